-- Where each number of an answer came from; one row per number, '' where nothing is known.
CREATE TABLE links (
    answer VARCHAR NOT NULL,          -- the turn's id
    place BIGINT NOT NULL,            -- which number of the answer, from 0
    number VARCHAR NOT NULL,          -- as it was written
    value DOUBLE,                     -- in base units
    unit VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,
    period VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,            -- call, fact, report, user, computed, or none
    call VARCHAR NOT NULL,
    fact VARCHAR NOT NULL,
    report VARCHAR NOT NULL,
    page BIGINT,
    words VARCHAR NOT NULL,           -- what the source says
    clause VARCHAR NOT NULL,          -- what the answer says
    session_id VARCHAR NOT NULL,
    turn_id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    timestamp TIMESTAMP
);
