-- sqlite_schema_2.sql - a record remembers its event: see record/cause.c for the bytes.

ALTER TABLE main.hapax_record ADD COLUMN cause BLOB;
