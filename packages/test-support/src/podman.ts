import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { removeEmptyCgroups } from './podman-cgroups.ts';
import { writePodmanConfig } from './podman-config.ts';
import { PodmanRelay } from './podman-relay.ts';

const run = promisify(execFile);
const startLimitMs = 30_000;

export interface PodmanOptions {
  /** Image of sandboxes, for pods that Podman makes itself. */
  readonly infraImage?: string;
}

/** Makes the namespaces its own: nothing of Podman's mounts, network links and run files is to be seen on the machine. */
const holderScript = `
mount -t tmpfs tmpfs /run && mkdir -p /run/lock && mount -t tmpfs tmpfs /dev/shm && ip link set lo up || exit 1
echo ready $$
exec cat
`;

/**
 * Podman's API service on a socket and storage of its own, in a mount and a network namespace of its own, so that it disturbs neither another
 * container engine nor the machine. Processes and cgroups are the machine's. Needs root and `podman`, `runc`, `conmon`, CNI plugins, `iptables`.
 */
export class Podman implements AsyncDisposable {
  /** `unix://...` of the Docker-compatible API. */
  readonly endpoint: string;
  readonly folder: string;
  readonly #holder: ChildProcess;
  readonly #holderPid: number;
  readonly #relays: PodmanRelay[] = [];
  #service: ChildProcess | undefined;

  private constructor(folder: string, holder: ChildProcess, holderPid: number) {
    this.folder = folder;
    this.endpoint = `unix://${join(folder, 'podman.sock')}`;
    this.#holder = holder;
    this.#holderPid = holderPid;
  }

  /** Everything is in the folder, which disposing removes. */
  static async open(folder: string, options: PodmanOptions = {}): Promise<Podman> {
    await mkdir(folder, { recursive: true });
    await writePodmanConfig(folder, options.infraImage);
    const args = ['--mount', '--net', '--propagation', 'private', 'sh', '-c', holderScript];
    // It waits for the end of its standard input, so it goes with this process, however that ends.
    const holder = spawn('unshare', args, { stdio: ['pipe', 'pipe', 'inherit'] });
    holder.stdin.on('error', () => {});
    const [line] = (await once(holder.stdout, 'data')) as [Buffer];
    const pid = Number(/^ready (\d+)/.exec(line.toString())?.[1]);
    const podman = new Podman(folder, holder, pid);
    try {
      await podman.start();
      return podman;
    } catch (error) {
      await podman[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Begin of a command line that runs in the network and among the mounts of this Podman. */
  get enter(): readonly [string, ...string[]] {
    return ['nsenter', '--target', String(this.#holderPid), '--mount', '--net', '--'];
  }

  /** Runs `podman` on this storage and gives what it prints. */
  async command(...args: string[]): Promise<string> {
    const [program, ...rest] = this.#commandLine(args);
    const { stdout } = await run(program, rest, { env: this.#environment, maxBuffer: 64 * 1024 * 1024 });
    return stdout;
  }

  /** Loads images out of a docker archive. */
  async load(archive: string): Promise<void> {
    await this.command('load', '--quiet', '--input', archive);
  }

  /** Starts the service if it does not run, and waits until it answers. */
  async start(): Promise<void> {
    if (this.#service !== undefined) return;
    const [program, ...rest] = this.#commandLine(['--log-level=error', 'system', 'service', '--time=0', this.endpoint]);
    this.#service = spawn(program, rest, { env: this.#environment, stdio: 'ignore' });
    const deadline = performance.now() + startLimitMs;
    while (!(await this.#answers())) {
      if (performance.now() > deadline || this.#service.exitCode !== null) throw new Error('podman does not start');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Stops the service; containers run on. */
  async stop(): Promise<void> {
    const service = this.#service;
    this.#service = undefined;
    if (service === undefined || service.exitCode !== null || service.signalCode !== null) return;
    const gone = once(service, 'exit');
    service.kill('SIGCONT');
    service.kill('SIGKILL');
    await gone;
    await rm(join(this.folder, 'podman.sock'), { force: true });
  }

  /** The service takes connections and answers nothing, until it is resumed. */
  pause(): void {
    this.#service?.kill('SIGSTOP');
  }

  resume(): void {
    this.#service?.kill('SIGCONT');
  }

  /** Makes a port of this machine's loopback reachable at the loopback of Podman's network, for registries. */
  async relay(port: number): Promise<void> {
    this.#relays.push(await PodmanRelay.open(this.folder, this.enter, port));
  }

  /** Ids of all containers, those included that do not run. */
  async containers(): Promise<string[]> {
    return (await this.command('ps', '--all', '--quiet', '--no-trunc')).split('\n').filter((id) => id !== '');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.command('rm', '--all', '--force', '--time', '0').catch(() => {});
    for (const relay of this.#relays) await relay[Symbol.asyncDispose]();
    const gone = once(this.#holder, 'exit');
    this.#holder.stdin?.end();
    if (this.#holder.exitCode === null) await gone;
    await rm(this.folder, { recursive: true, force: true });
    removeEmptyCgroups('libpod_parent');
  }

  get #environment(): NodeJS.ProcessEnv {
    return {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: this.folder,
      CONTAINERS_CONF: join(this.folder, 'containers.conf'),
      CONTAINERS_REGISTRIES_CONF: join(this.folder, 'registries.conf'),
      TMPDIR: join(this.folder, 'tmp'),
    };
  }

  #commandLine(args: readonly string[]): [string, ...string[]] {
    const storage = ['--root', join(this.folder, 'root'), '--runroot', join(this.folder, 'runroot'), '--storage-driver', 'vfs'];
    return [...this.enter, 'podman', ...storage, ...args];
  }

  #answers(): Promise<boolean> {
    return new Promise((resolve) => {
      const socket = connect(join(this.folder, 'podman.sock'));
      socket.once('error', () => resolve(false));
      socket.once('connect', () => socket.end('GET /_ping HTTP/1.0\r\n\r\n'));
      socket.once('data', (chunk) => resolve(chunk.toString().includes(' 200 ')));
    });
  }
}
