-- What the turn under way must know to be gone on with, as JSON; null between turns.
ALTER TABLE sessions ADD COLUMN turn TEXT;
