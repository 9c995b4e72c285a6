-- Least rights: `linkspan_node` writes rows and changes nothing else, `linkspan_reader` reads what agents did.
-- Both have no password yet; one sets it with `\password`, or lets a login be a member.
DO $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = 'linkspan_node') THEN
        CREATE ROLE linkspan_node LOGIN;
    END IF;
    IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = 'linkspan_reader') THEN
        CREATE ROLE linkspan_reader LOGIN;
    END IF;
END $$;

GRANT USAGE ON SCHEMA linkspan TO linkspan_node, linkspan_reader;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA linkspan TO linkspan_node;
REVOKE INSERT, UPDATE, DELETE ON linkspan.meta FROM linkspan_node;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA linkspan TO linkspan_node;
GRANT SELECT ON linkspan.sessions, linkspan.events, linkspan.lines, linkspan.runs, linkspan.nodes
TO linkspan_reader;

-- A node that hangs must not keep the others from a session. Poolers refuse these at the start of a connection.
ALTER ROLE linkspan_node SET statement_timeout = '60s';
ALTER ROLE linkspan_node SET lock_timeout = '5s';
ALTER ROLE linkspan_node SET idle_in_transaction_session_timeout = '10s';
