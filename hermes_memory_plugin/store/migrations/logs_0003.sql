-- Results of old calls, each content once, compressed; a row's ref is the hash.
CREATE TABLE payloads (
    hash VARCHAR NOT NULL,            -- sha-256 of the UTF-8 text
    data BLOB NOT NULL                -- zstd or gzip
);
