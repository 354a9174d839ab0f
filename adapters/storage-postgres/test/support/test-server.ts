import type { TestFn } from 'ava';
import { findPostgres, type PostgresServer, type ServerOptions, startPostgres } from './postgres-server.ts';

/**
 * A server for the tests of this file, started before the first and stopped after the last. Without PostgreSQL on the
 * machine the tests are skipped visibly, and fail where they are required (`CI` is set).
 *
 * @returns undefined when there is no PostgreSQL; tests that depend on the server must not be registered then.
 */
export function serverFor(test: TestFn, options: ServerOptions = {}): { readonly server: PostgresServer } | undefined {
  if (findPostgres() === undefined) {
    if (process.env['CI'] !== undefined)
      test('PostgreSQL is installed', (t) => t.fail('initdb and postgres were not found'));
    else test.skip('tests on PostgreSQL [not run, initdb and postgres were not found]', () => {});
    return undefined;
  }
  let server: PostgresServer | undefined;
  test.before(async () => {
    server = await startPostgres(options);
    await server.createDatabase('keelson');
  });
  test.after.always(async () => {
    await server?.stop();
  });
  return {
    get server() {
      if (server === undefined) throw new Error('the server is not started yet');
      return server;
    },
  };
}
