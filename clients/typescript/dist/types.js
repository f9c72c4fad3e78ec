/** What the server sends and takes, named; the fields are those of `docs/api.md`. */
export {};
