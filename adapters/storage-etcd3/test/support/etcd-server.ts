import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildGoTool, findProgram, freePorts, installPrograms, memoryFolder } from '@keelson/test-support';
import { Etcd3 } from 'etcd3';

/**
 * Path of an etcd to test with, of the requested kind: `newest` is built from its modules. `KEELSON_TEST_ETCD`
 * names the kind, or an etcd.
 *
 * @returns undefined when there is none and none can be installed
 * @throws Error in continuous integration, which must have both
 */
export function findEtcd(wanted = process.env['KEELSON_TEST_ETCD'] || 'installed'): string | undefined {
  if (wanted === 'newest') {
    const built = buildGoTool('etcd');
    if (built === undefined && process.env['CI']) throw new Error('no etcd could be built from its modules');
    return built;
  }
  if (wanted !== 'installed') {
    if (!existsSync(wanted)) throw new Error(`KEELSON_TEST_ETCD: there is no ${wanted}`);
    return wanted;
  }
  installPrograms(['etcd', 'etcdctl'], ['etcd-server', 'etcd-client']);
  return findProgram('etcd') ?? buildGoTool('etcd');
}

/** Kills a server when its test process has ended, which closes the input; the line "done" prevents that. */
const guard = 'read word; if [ "$word" != done ]; then kill -9 "$0"; rm -rf "$1"; fi';

interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

/**
 * A single-member etcd of one test, on loopback. Its directory, in memory where the machine has enough of it, is
 * deleted with it.
 */
export class EtcdServer {
  readonly port: number;
  /** The port of the listener with TLS; 0 without. */
  readonly tlsPort: number;
  readonly #tls: TlsFiles | undefined;
  readonly #binary: string;
  readonly #peerPort: number;
  readonly #folder: string;
  #child: ChildProcess | undefined;

  private constructor(binary: string, ports: readonly number[], tls: TlsFiles | undefined) {
    const [port = 0, peerPort = 0, tlsPort = 0] = ports;
    this.#binary = binary;
    this.port = port;
    this.#peerPort = peerPort;
    this.tlsPort = tls === undefined ? 0 : tlsPort;
    this.#tls = tls;
    this.#folder = mkdtempSync(join(memoryFolder(), 'keelson-etcd-'));
  }

  static start(binary: string): Promise<EtcdServer> {
    return EtcdServer.#start(binary, undefined);
  }

  /** Listens with TLS, too, where clients must show a certificate. */
  static startWithTls(binary: string, tls: TlsFiles): Promise<EtcdServer> {
    return EtcdServer.#start(binary, tls);
  }

  static async #start(binary: string, tls: TlsFiles | undefined): Promise<EtcdServer> {
    for (let attempt = 1; ; attempt++) {
      const server = new EtcdServer(binary, await freePorts(3), tls);
      try {
        await server.run();
        return server;
      } catch (error) {
        // Another process may have taken a port in between.
        await server.remove();
        if (attempt === 3) throw error;
      }
    }
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.#child?.pid as number;
  }

  /** The data directory, which exists until `remove`. */
  get dataFolder(): string {
    return join(this.#folder, 'data');
  }

  /** Starts the process on the same data and ports, and waits until it answers. */
  async run(): Promise<void> {
    const client = `http://127.0.0.1:${this.port}`;
    const peer = `http://127.0.0.1:${this.#peerPort}`;
    const log = join(this.#folder, 'log');
    const secure = `https://127.0.0.1:${this.tlsPort}`;
    const flags = {
      ...(this.#tls && {
        'cert-file': this.#tls.cert,
        'key-file': this.#tls.key,
        'client-cert-auth': 'true',
        'trusted-ca-file': this.#tls.ca,
      }),
      name: 'test',
      'data-dir': this.dataFolder,
      'listen-client-urls': this.#tls === undefined ? client : `${client},${secure}`,
      'advertise-client-urls': client,
      'listen-peer-urls': peer,
      'initial-advertise-peer-urls': peer,
      'initial-cluster': `test=${peer}`,
      'log-level': 'warn',
      logger: 'zap',
      'snapshot-count': '10000',
    };
    const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
    const out = openSync(log, 'a');
    const child = spawn(this.#binary, args, { stdio: ['ignore', out, out] });
    this.#child = child;
    const watcher = spawn('sh', ['-c', guard, String(child.pid), this.#folder], {
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    watcher.stdin?.on('error', () => {});
    child.once('exit', () => watcher.stdin?.end('done\n'));
    const deadline = Date.now() + 30_000;
    while (!(await this.#healthy())) {
      if (child.exitCode !== null)
        throw new Error(`etcd ended with ${child.exitCode}: ${readFileSync(log, 'utf8').slice(-2000)}`);
      if (Date.now() > deadline) throw new Error(`etcd does not answer: ${readFileSync(log, 'utf8').slice(-2000)}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exit = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await exit;
  }

  /** Continues the process after `stopProcess`. */
  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  /** The version that the server reports. */
  async version(): Promise<string> {
    return ((await (await fetch(`${this.url}/version`)).json()) as { etcdserver: string }).etcdserver;
  }

  /** Takes a snapshot of the running server; returns its file. */
  async saveSnapshot(): Promise<string> {
    const file = join(this.#folder, `snapshot-${Date.now()}`);
    const client = new Etcd3({ hosts: this.url });
    try {
      const parts = await client.maintenance.snapshot();
      await new Promise<void>((resolve, reject) => {
        parts.on('data', ({ blob }) => appendFileSync(file, blob));
        parts.on('end', resolve);
        parts.on('error', reject);
      });
    } finally {
      client.close();
    }
    return file;
  }

  /**
   * Restores a snapshot in the place of the data, as operators do it: the server is stopped meanwhile, and is the same
   * member afterwards.
   */
  async restoreSnapshot(file: string, ...options: readonly string[]): Promise<void> {
    await this.kill();
    rmSync(this.dataFolder, { recursive: true });
    const peer = `http://127.0.0.1:${this.#peerPort}`;
    // etcd of 3.6 restores snapshots with a tool of its own, which the one that is built contains.
    const program = this.#binary.includes('keelson-test') ? this.#binary : (findProgram('etcdctl') ?? 'etcdctl');
    const member = ['--name=test', `--initial-cluster=test=${peer}`, `--initial-advertise-peer-urls=${peer}`];
    execFileSync(program, ['snapshot', 'restore', file, `--data-dir=${this.dataFolder}`, ...member, ...options], {
      env: { ...process.env, ETCDCTL_API: '3' },
      stdio: 'pipe',
    });
    await this.run();
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #healthy(): Promise<boolean> {
    try {
      const answer = await fetch(`${this.url}/health`, { signal: AbortSignal.timeout(1000) });
      return answer.ok && ((await answer.json()) as { health?: unknown }).health === 'true';
    } catch {
      return false;
    }
  }
}
