-- Whose hands a key is in: two keys of one person are one person.
ALTER TABLE api_key ADD COLUMN person text;
