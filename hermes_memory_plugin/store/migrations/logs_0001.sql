-- No primary keys: DuckDB would write the whole index again on every visit. The drain keeps ids unique.
CREATE TABLE logs (
    ulid VARCHAR NOT NULL,
    tool_call_id VARCHAR NOT NULL,
    tool_name VARCHAR NOT NULL,
    arguments VARCHAR NOT NULL,       -- JSON
    result VARCHAR NOT NULL,          -- the whole result, or its head and tail when ref is set
    ref VARCHAR NOT NULL,
    result_bytes BIGINT NOT NULL,
    status VARCHAR NOT NULL,
    error VARCHAR NOT NULL,
    duration_ms DOUBLE,
    session_id VARCHAR NOT NULL,
    turn_id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    origin VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    timestamp TIMESTAMP               -- every time is UTC
);
CREATE TABLE turns (
    id VARCHAR NOT NULL,
    session_id VARCHAR NOT NULL,
    turn_id VARCHAR NOT NULL,
    user_text VARCHAR NOT NULL,
    assistant_text VARCHAR NOT NULL,
    speaker VARCHAR NOT NULL,
    completed BOOLEAN,                -- NULL while the turn is open
    owner VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    timestamp TIMESTAMP
);
CREATE TABLE audits (
    id VARCHAR NOT NULL,
    session_id VARCHAR NOT NULL,
    turn_id VARCHAR NOT NULL,
    question VARCHAR NOT NULL,
    tokens BIGINT,
    ms DOUBLE,
    items VARCHAR NOT NULL,           -- JSON
    cut VARCHAR NOT NULL,             -- JSON
    degraded VARCHAR NOT NULL,        -- JSON
    owner VARCHAR NOT NULL,
    timestamp TIMESTAMP
);
CREATE TABLE events (id VARCHAR NOT NULL, name VARCHAR NOT NULL, n BIGINT NOT NULL, detail VARCHAR NOT NULL,
    owner VARCHAR NOT NULL, timestamp TIMESTAMP);
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
