-- Partitions of any table: created beside it, and dropped. Roles may not do so by themselves: what they call runs with
-- the rights of the schema's owner, and checks what it is given against the server's clock (TM003).

-- How far the time of a process may be from the server's. Tests, which move the time of processes, replace it.
CREATE OR REPLACE FUNCTION clock_tolerance() RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT interval '1 minute'
$$;

-- Creates a partition of p_parent from p_from to p_to, bounds as `FOR VALUES` takes them. It is created as a table and
-- then attached: CREATE … PARTITION OF would block those who write to the parent. p_options: storage parameters.
CREATE OR REPLACE FUNCTION create_partition(p_parent text, p_name text, p_options text, p_from text, p_to text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', p_name, p_parent);
    IF p_options IS NOT NULL THEN
        EXECUTE format('ALTER TABLE %I SET (%s)', p_name, p_options);
    END IF;
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', p_parent, p_name, p_from, p_to);
END $$;

-- Drops tables; returns how many.
CREATE OR REPLACE FUNCTION drop_tables(p_names name[]) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_name name;
BEGIN
    FOREACH v_name IN ARRAY p_names LOOP
        EXECUTE format('DROP TABLE %I', v_name);
    END LOOP;
    RETURN cardinality(p_names);
END $$;
