"""`python -m hermes_memory_plugin.cli`: the command of exactly this interpreter."""

import sys

from hermes_memory_plugin.cli import main

sys.exit(main())
