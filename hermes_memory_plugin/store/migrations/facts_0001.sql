-- No primary keys: DuckDB would write the whole index again on every visit. The drain keeps ids unique.
CREATE TABLE facts (
    id VARCHAR NOT NULL,
    key VARCHAR NOT NULL,             -- rows of one key speak of the same thing; '' speaks only for itself
    kind VARCHAR NOT NULL,
    statement VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,
    period VARCHAR NOT NULL,
    value DOUBLE,
    unit VARCHAR NOT NULL,
    as_of TIMESTAMP,                  -- every time is UTC
    basis VARCHAR NOT NULL,
    holder VARCHAR NOT NULL,
    currency VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    tool_call_id VARCHAR NOT NULL,
    origin VARCHAR NOT NULL,
    trust BIGINT NOT NULL,
    owner VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    project VARCHAR NOT NULL,
    approximate BOOLEAN NOT NULL,
    created_at TIMESTAMP,
    expires_at TIMESTAMP,
    superseded_by VARCHAR NOT NULL,   -- '' while the row stands
    record VARCHAR NOT NULL,          -- the journal record that wrote the row last
    recorded_at TIMESTAMP,
    extra VARCHAR NOT NULL            -- JSON of what has no column
);
CREATE TABLE confirmations (id VARCHAR NOT NULL, confirmed_at TIMESTAMP NOT NULL);
CREATE TABLE tombstones (
    id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,           -- whose row it was; 'any' for everybody's
    forgotten_at TIMESTAMP,
    forgotten_by VARCHAR NOT NULL,
    why VARCHAR NOT NULL
);
CREATE TABLE other (id VARCHAR NOT NULL, kind VARCHAR NOT NULL, owner VARCHAR NOT NULL, timestamp TIMESTAMP,
    record VARCHAR NOT NULL, why VARCHAR NOT NULL);
CREATE TABLE offsets (journal VARCHAR NOT NULL, "offset" BIGINT NOT NULL);
