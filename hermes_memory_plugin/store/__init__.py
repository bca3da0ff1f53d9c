"""Where bytes go: journal, ledgers, locks."""
