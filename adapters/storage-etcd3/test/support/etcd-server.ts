import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram, freePorts, installPrograms } from '@keelson/test-support';

/** Path of an etcd to test with; undefined when there is none and none can be installed. */
export function findEtcd(): string | undefined {
  const given = process.env['KEELSON_TEST_ETCD'];
  if (given !== undefined && given !== '') {
    if (!existsSync(given)) throw new Error(`KEELSON_TEST_ETCD: there is no ${given}`);
    return given;
  }
  installPrograms(['etcd'], ['etcd-server']);
  return findProgram('etcd');
}

/** Ends a server whose test process has died in whatever way: its input ends then. Says "done" to let it go. */
const guard = 'read word; if [ "$word" != done ]; then kill -9 "$0"; rm -rf "$1"; fi';

interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

/** A single-member etcd of the test's own, on loopback, in a directory that goes with it. */
export class EtcdServer {
  readonly port: number;
  /** Of the listener with TLS; 0 without. */
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
    this.#folder = mkdtempSync(join(tmpdir(), 'keelson-etcd-'));
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
        // Somebody may have taken a port in between.
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

  /** Where `remove` has not been. */
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
    const watcher = spawn('sh', ['-c', guard, String(child.pid), this.#folder], { stdio: ['pipe', 'ignore', 'ignore'] });
    watcher.stdin?.on('error', () => {});
    child.once('exit', () => watcher.stdin?.end('done\n'));
    const deadline = Date.now() + 20_000;
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

  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(name);
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
