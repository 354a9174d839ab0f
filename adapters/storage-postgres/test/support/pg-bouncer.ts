import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { findProgram, freePort } from '@keelson/test-support';

interface RunOptions {
  /** Belongs to the server, and is removed with it. */
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly uid?: number;
  readonly gid?: number;
}

/** Ends the pooler when this process has ended. */
const guard = `exec 3<&0
"$1" "$2" </dev/null >/dev/null 2>&1 & p=$!
(cat <&3 >/dev/null; kill -KILL $p 2>/dev/null) &
wait $p`;

/**
 * A PgBouncer in transaction mode in front of a server, as its manual sets one up, for every database and the roles of
 * the tests.
 */
export async function startPgBouncer(
  serverPort: number,
  run: RunOptions,
): Promise<{ readonly port: number; stop(): Promise<void> }> {
  const program = findProgram('pgbouncer');
  if (program === undefined) throw new Error('there is no pgbouncer');
  const port = await freePort();
  const at = (name: string) => join(run.cwd, name);
  writeFileSync(at('users'), '"postgres" ""\n"plain" ""\n');
  writeFileSync(
    at('pgbouncer.ini'),
    `[databases]
* = host=127.0.0.1 port=${serverPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${at('users')}
logfile = ${at('pgbouncer.log')}
pool_mode = transaction
max_client_conn = 500
server_login_retry = 1
ignore_startup_parameters = options
`,
  );
  const shell = spawn('sh', ['-c', guard, 'sh', program, at('pgbouncer.ini')], {
    ...run,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const deadline = Date.now() + 20_000;
  while (!(await answers(port))) {
    if (shell.exitCode !== null || Date.now() > deadline) {
      shell.stdin.end();
      throw new Error(`PgBouncer does not start: ${readFileSync(at('pgbouncer.log'), 'utf8').slice(-2000)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return {
    port,
    async stop() {
      const exit = shell.exitCode === null ? once(shell, 'exit') : undefined;
      shell.stdin.end();
      await exit;
    },
  };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('close', () => socket.destroy());
    socket.once('connect', () => socket.end());
  });
}
