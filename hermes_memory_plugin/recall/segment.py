"""The one tokenizer: what it makes of a row is what it makes of a question.

`tokens` takes text as it was written (camelCase needs the case) and gives lower-case tokens:

- identifiers whole and in parts: codes (``600519.sh`` and ``600519``), paths, snake_case, camelCase, flags, versions;
- periods as ``~y2019``, ``~2024q1``, ``~2024h1``, ``~m202404``, ``~d20240430`` (see `periods.tokens_of`);
- Chinese words and the character pairs that are no word of the text; without a segmenter, the pairs alone;
- English stems without stop words; words or character pairs of other scripts.

A change of script is a boundary. Nothing raises; time is linear in the text. Thread-safe.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable
from pathlib import Path

from hermes_memory_plugin.recall import periods
from hermes_memory_plugin.recall.normalise import fold, lowered

FORMAT = 1
"""Raised whenever the same text gives other tokens; part of `TOKENIZER`."""

_STOP_WORDS = """
a an the and or but if then than so of in on at by for from with without into onto to as is are was were be been
being am do does did doing done have has had having i me my we us our you your he him his she her it its they them
their this that these those there here what which who whom whose when where why how not no nor can could will would
shall should may might must just also too very about over under again once only own same such any all both each
few more most other some s t d ll re ve m don isn aren wasn didn doesn hasn haven won let up down out off
"""
STOP = frozenset(_STOP_WORDS.split())
_HAN = "\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_PAIRED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u0f00-\u0fff\u3040-\u30ff\u31f0-\u31ff"
_HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff"
_RUN = re.compile(
    rf"(?P<han>[{_HAN}]+)"
    rf"|(?P<word>-{{0,2}}[a-z0-9_][a-z0-9_]*(?:[-./\\:@&'][a-z0-9_]+)*(?:\+\+|#)?|[~.]?/\.?[a-z0-9_][a-z0-9_./-]*)"
    rf"|(?P<paired>[{_PAIRED}]+)|(?P<hangul>[{_HANGUL}]+)"
    r"|(?P<other>(?:(?![\u3040-\u9fff])[^\W\d_]|[\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u0670"
    r"\u06d6-\u06ed\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u0a01-\u0a4d"
    r"\u0abc-\u0acd\u0b01-\u0b4d\u0bbe-\u0bcd\u0c00-\u0c4d\u0cbc-\u0ccd\u0d00-\u0d4d])+|\d+)"
)
_CODE = re.compile(
    r"(?<![a-z0-9])(?:(?:(sh|sz|bj)[.:]?([034689]\d{5}|1[1256]\d{4}|2[0-9]\d{4}|5\d{5})|([0134689]\d{5}|[25]\d{5})\.(sh|ss|sz|bj|xshg|xshe))"
    r"|(?:hk[.:]?(\d{4,5})|(?<![\d.])(\d{3,5})\.hk))(?![a-z0-9])"
)
_CODE_AHEAD = re.compile(r"\.(?:s[hsz]|xsh|bj|hk)|(?:s[hz]|bj|hk)[.:]?\d")
_MARKETS = {"ss": "sh", "xshg": "sh", "xshe": "sz"}
_CAMEL = re.compile(r"\b[A-Za-z]+[a-z0-9][A-Z][A-Za-z0-9]*|\b[A-Z]{2,}[a-z]{2,}[A-Za-z0-9]*")
_CAMEL_AHEAD = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2}")
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_PIECE = re.compile(r"[a-z]+|\d+(?:\.\d+)?")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_VERSION = re.compile(r"v?(\d+(?:\.\d+)+)")
_LABELLED = re.compile(r"([a-z]{2,})(\d+\.\d+)")
_ACCENTED = re.compile("[\u00c0-\u024f\u1e00-\u1eff]|(?<=[a-z])[\u0300-\u036f]+")
_LIGATURES = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"}
_SPLIT = re.compile(r"[-./\\:@&'_]+")
_LONGEST = 96

_ENGINE = re.compile(r"/([a-z]+)[^+]*")
_DIGITS = re.compile(r"\d+")

Cut = Callable[[str], list[str]]

_lock = threading.Lock()
_cut: Cut | None = None
_has_word: Callable[[str], bool] = bool  # replaced together with _cut
_name = ""
_wanted = ""
_cache_folder: Path | None = None
_stems: dict[str, str] = {}
_stemmer: Callable[[str], str] | None = None


def tokens(text: str) -> list[str]:
    """The tokens of a text, repeated as often as they occur."""
    text = fold(text)
    out: list[str] = []
    if _CAMEL_AHEAD.search(text):
        _camel(text, out)
    text = lowered(text)
    if not text.isascii():
        text = _ACCENTED.sub(_unaccented, text)
    if not text:
        return out
    text = _named_periods(text, out)
    if _CODE_AHEAD.search(text):
        text = _CODE.sub(lambda match: _code(match, out), text)
    if "," in text:
        text = _THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    cut = _cut or _load()
    for match in _RUN.finditer(text):
        run = match[0]
        kind = match.lastgroup
        if kind == "han":
            if len(run) == 1:
                out.append(run)
                continue
            words = cut(run)
            out += words
            seen = set(words)
            out += [pair for pair in map(str.__add__, run, run[1:]) if pair not in seen]
        elif kind == "word":
            _word(run, out)
        elif kind == "other":
            out.append(run[:_LONGEST])
        else:
            if kind == "hangul" or len(run) == 1:
                out.append(run[:_LONGEST])
            out += map(str.__add__, run, run[1:])
    return out


def words(run: str) -> list[str]:
    """The words of a run of Chinese characters; empty without a segmenter."""
    return (_cut or _load())(run)


def is_word(word: str) -> bool:
    """Whether the segmenter's dictionary has the word; False without a segmenter."""
    _load()
    return _has_word(word)


def stem(word: str) -> str:
    """The Snowball stem of a lower-case English word."""
    found = _stems.get(word)
    return _stem(word) if found is None else found


def warm(folder: Path | None = None) -> str:
    """Load the segmenter and the stemmer now; `folder` is where jieba may keep its cache. Gives `TOKENIZER`."""
    global _cache_folder
    if folder is not None:
        _cache_folder = folder
    _load()
    tokens("warm words 预热 warming")
    return _name


def prefer(tokenizer: str) -> None:
    """Cut as the name of a tokenizer says, where its segmenter is installed; "" means the best that is.

    One process cuts in one way: once words were cut, only "" still changes it.
    """
    global _wanted, _cut
    wanted = engine_of(tokenizer)
    with _lock:
        if _cut is None:
            _wanted = wanted
        elif not wanted and _wanted:
            _wanted, _cut = "", None


def engine_of(tokenizer: str) -> str:
    """rjieba, jieba or pairs: the segmenter a tokenizer's name speaks of; "" when it speaks of none."""
    found = _ENGINE.search(tokenizer)
    return found[1] if found else ""


def fits(recorded: str, own: str) -> bool:
    """Whether an index cut by one tokenizer is of use to the other.

    Another segmenter cuts a few words elsewhere, and their character pairs still meet. What a newer version made stays: were
    each to make it anew in his own way, two processes would do so in turn for ever.
    """
    recorded, own = _ENGINE.sub("", recorded), _ENGINE.sub("", own)
    if _DIGITS.sub("#", recorded) != _DIGITS.sub("#", own):
        return False
    versions = zip(_DIGITS.findall(recorded), _DIGITS.findall(own), strict=True)
    return all(int(theirs) >= int(ours) for theirs, ours in versions)


def _named_periods(text: str, out: list[str]) -> str:
    found = periods.named(text)
    if not found:
        return text
    kept, end = [], 0
    for item in found:
        out += periods.tokens_of(item.id)
        if len(item.id) == 10:  # a full date stands for its day alone: its digits would count as its year
            kept.append(text[end : item.start])
            end = item.end
    return " ".join([*kept, text[end:]]) if kept else text


def _code(match: re.Match[str], out: list[str]) -> str:
    market, prefixed, plain, suffix, hk_prefixed, hk = match.groups()
    if market or suffix:
        digits = prefixed or plain
        market = market or _MARKETS.get(suffix, suffix)
    else:
        digits, market = (hk_prefixed or hk).zfill(5), "hk"
    out += (digits, f"{digits}.{market}")
    return " "


def _camel(text: str, out: list[str]) -> None:
    for match in _CAMEL.finditer(text):
        parts = [part.lower() for part in _HUMP.findall(match[0])]
        if 1 < len(parts) <= 12:
            out += [stem(part) for part in parts if len(part) > 1 and part not in STOP]


def _word(run: str, out: list[str]) -> None:
    if run.isalpha():
        if run not in STOP:
            out.append(stem(run))
        return
    bare = run.strip("-./\\:@&'")
    if _NUMBER.fullmatch(bare):
        out.append(bare[:_LONGEST])
        return
    if match := _VERSION.fullmatch(bare):
        out += dict.fromkeys((bare[:_LONGEST], match[1][:_LONGEST]))
        return
    if match := _LABELLED.fullmatch(bare):  # PE28.5
        out += (stem(match[1]), match[2])
        return
    if run[:2] == "--" or (run[0] == "-" and len(run) > 1 and run[1].isalpha()):
        out.append(run[:_LONGEST])
    if bare.endswith("'s"):
        bare = bare[:-2]
    parts = [part for part in _SPLIT.split(bare) if part]
    if len(parts) > 1 and not (len(parts) == 2 and "'" in bare):
        if len(parts) > 2 or "/" not in bare:
            out.append(bare[:_LONGEST])
        if run[0] in "/.~" and run != bare:
            out.append(run[:_LONGEST])
    whole = "_" in bare
    for part in parts:
        if part.isalpha():
            if part not in STOP:
                out.append(stem(part))
            continue
        out.append(part[:_LONGEST])
        if not whole and not part.isdigit():
            pieces = _PIECE.findall(part)
            if len(pieces) == 2:
                out += [stem(piece) for piece in pieces if len(piece) > 1 and piece not in STOP]


def _unaccented(match: re.Match[str]) -> str:
    letter = match[0]
    return _LIGATURES.get(letter) or "".join(
        c for c in unicodedata.normalize("NFD", letter) if not unicodedata.combining(c)
    )


def _stem(word: str) -> str:
    global _stemmer
    if len(word) < 3 or len(word) > 40:
        return word[:_LONGEST]
    with _lock:  # the stemmer keeps state between its steps
        if _stemmer is None:
            _stemmer = _load_stemmer()
        if len(_stems) > 60_000:
            _stems.clear()
        found = _stems[word] = _stemmer(word)
    return found


def _load_stemmer() -> Callable[[str], str]:
    try:
        from snowballstemmer.english_stemmer import EnglishStemmer
    except ImportError:
        return lambda word: word
    stemmer = EnglishStemmer()
    return lambda word: str(stemmer.stemWord(word))


def _load() -> Cut:
    global _cut, _has_word, _name
    with _lock:
        if _cut is None:
            _name, _has_word, _cut = _best()
        return _cut


def _best() -> tuple[str, Callable[[str], bool], Cut]:
    # Whoever is named first is tried first; pairs need nobody.
    engines = sorted(_ENGINES, key=lambda engine: engine[0] != _wanted) if _wanted != "pairs" else []
    for engine, load in engines:
        try:
            has_word, cut = load()
        except Exception:  # a broken wheel must not take recall with it
            continue
        return f"{FORMAT}/{engine}-{_version(engine)}", has_word, cut
    return f"{FORMAT}/pairs", lambda word: False, lambda run: []


def _rjieba() -> tuple[Callable[[str], bool], Cut]:
    import rjieba

    rjieba.cut("预热")
    return rjieba.has_word, rjieba.cut


def _jieba() -> tuple[Callable[[str], bool], Cut]:
    import logging

    import jieba

    jieba.setLogLevel(logging.CRITICAL)
    if _cache_folder is not None:
        _cache_folder.mkdir(parents=True, exist_ok=True)
        jieba.dt.tmp_dir = str(_cache_folder)
    jieba.initialize()
    return lambda word: bool(jieba.dt.FREQ.get(word)), jieba.lcut


_ENGINES: tuple[tuple[str, Callable[[], tuple[Callable[[str], bool], Cut]]], ...] = (
    ("rjieba", _rjieba),
    ("jieba", _jieba),
)


def _version(engine: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(engine)
    except PackageNotFoundError:
        return "unknown"


def __getattr__(name: str) -> str:
    if name == "TOKENIZER":  # the name and version of what cuts here; an index made by another one is rebuilt
        _load()
        return _name
    raise AttributeError(name)
