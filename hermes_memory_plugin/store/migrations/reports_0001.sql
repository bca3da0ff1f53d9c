-- Reports and their passages. No primary keys: see facts_0001.sql.
CREATE TABLE reports (
    id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    broker VARCHAR NOT NULL,
    analysts VARCHAR NOT NULL,        -- JSON list, as tickers and names
    date VARCHAR NOT NULL,            -- ISO day, '' when nobody could tell
    tickers VARCHAR NOT NULL,
    names VARCHAR NOT NULL,
    industry VARCHAR NOT NULL,
    rating VARCHAR NOT NULL,
    target_price DOUBLE,
    currency VARCHAR NOT NULL,
    path VARCHAR NOT NULL,            -- where the file was last seen, '' for a document handed over
    sha256 VARCHAR NOT NULL,          -- of the file
    text_sha256 VARCHAR NOT NULL,     -- of its words
    licence VARCHAR NOT NULL,
    status VARCHAR NOT NULL,          -- text or no_text
    reason VARCHAR NOT NULL,
    pages BIGINT,
    passages BIGINT,
    problems VARCHAR NOT NULL,        -- JSON list of [page, what could not be read]
    edited VARCHAR NOT NULL,          -- JSON list of fields a person set; reading again leaves them alone
    added_at TIMESTAMP,
    record VARCHAR NOT NULL           -- the journal record that wrote the row last
);
CREATE TABLE passages (
    id VARCHAR NOT NULL,
    report VARCHAR NOT NULL,
    place BIGINT,                     -- in the report, from 0
    page BIGINT,
    section VARCHAR NOT NULL,
    text VARCHAR NOT NULL,
    tabular BOOLEAN,
    notice BOOLEAN                    -- a disclaimer: kept, and not searched
);
CREATE TABLE tombstones (
    id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    forgotten_at TIMESTAMP,
    forgotten_by VARCHAR NOT NULL,
    why VARCHAR NOT NULL
);
CREATE TABLE other (id VARCHAR NOT NULL, kind VARCHAR NOT NULL, owner VARCHAR NOT NULL, timestamp TIMESTAMP,
    record VARCHAR NOT NULL, why VARCHAR NOT NULL);
CREATE TABLE offsets (journal VARCHAR NOT NULL, "offset" BIGINT NOT NULL);
