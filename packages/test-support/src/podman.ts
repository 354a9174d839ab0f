import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { busyboxRoot } from './containerd-images.ts';
import { installPrograms } from './debian-packages.ts';
import { dockerArchive, tarOf } from './image-builder.ts';
import { writePodmanConfig } from './podman-config.ts';
import { holderScript } from './podman-holder.ts';
import { PodmanRelay } from './podman-relay.ts';
import { stopProcess } from './stop-process.ts';

const run = promisify(execFile);
const startLimitMs = 30_000;

const programs = ['podman', 'runc', 'conmon', 'busybox', 'ip', 'iptables', '../lib/cni/bridge'];
const packages = ['podman', 'runc', 'conmon', 'busybox-static', 'iproute2', 'iptables', 'containernetworking-plugins'];

/**
 * Why there can be no {@link Podman} here, after what is missing was installed where that is possible; empty when there
 * can.
 */
export function lackingForPodman(): readonly string[] {
  return process.getuid?.() === 0 ? installPrograms(programs, packages) : ['root'];
}

const pauseCommand = 'trap "exit 0" TERM INT; while :; do sleep 100000 & wait $!; done';

/**
 * Podman's API service with a separate socket and storage, in separate mount and network namespaces, so that it affects
 * neither another container engine nor the machine. It shares processes and cgroups with the machine. Everything is
 * removed when it is disposed of, and when the test process ends.
 */
export class Podman implements AsyncDisposable {
  /** `unix://...` of the Docker-compatible API. */
  readonly endpoint: string;
  readonly folder: string;
  /** An image whose program waits until it is killed. */
  readonly pauseImage = 'local.test/pause:1';
  /** An image with a shell and the usual tools in `/bin`, and with `/suite-file`, which contains `original`. */
  readonly busyboxImage = 'local.test/busybox:1';
  /** Tar file of the only layer of {@link pauseImage} and {@link busyboxImage}, for other images. */
  readonly layer: string;
  readonly #holder: ChildProcess;
  readonly #holderPid: number;
  readonly #storageDriver: string;
  readonly #relays: PodmanRelay[] = [];
  #service: ChildProcess | undefined;

  private constructor(folder: string, holder: ChildProcess, holderPid: number, storageDriver: string) {
    this.folder = folder;
    this.layer = join(folder, 'layer.tar');
    this.endpoint = `unix://${join(folder, 'podman.sock')}`;
    this.#holder = holder;
    this.#holderPid = holderPid;
    this.#storageDriver = storageDriver;
  }

  /** Everything is in a separate folder below `/tmp`, because paths of sockets are limited in length. */
  static async open(): Promise<Podman> {
    const folder = await mkdtemp('/tmp/keelson-pod-');
    await writePodmanConfig(folder, 'local.test/pause:1');
    const args = ['--mount', '--net', '--propagation', 'private', 'sh', '-c', holderScript, 'holder', folder];
    const holder = spawn('unshare', args, {
      stdio: ['pipe', 'pipe', 'ignore'],
      detached: true,
      env: environmentOf(folder),
    });
    holder.stdin.on('error', () => {});
    const [line] = (await once(holder.stdout, 'data')) as [Buffer];
    const [, pid, driver = ''] = /^ready (\d+) (\w+)/.exec(line.toString()) ?? [];
    const podman = new Podman(folder, holder, Number(pid), driver);
    try {
      await podman.#loadImages();
      await podman.start();
      return podman;
    } catch (error) {
      await podman[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** First words of a command line that runs a program in the network and mount namespaces of this Podman. */
  get enter(): readonly [string, ...string[]] {
    return ['nsenter', '--target', String(this.#holderPid), '--mount', '--net', '--'];
  }

  /** Runs `podman` on this storage and returns its output. */
  async command(...args: string[]): Promise<string> {
    const [program, ...rest] = this.#commandLine(args);
    const { stdout } = await run(program, rest, { env: environmentOf(this.folder), maxBuffer: 64 * 1024 * 1024 });
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
    this.#service = spawn(program, rest, { env: environmentOf(this.folder), stdio: 'ignore' });
    const deadline = performance.now() + startLimitMs;
    while (!(await this.#answers())) {
      if (performance.now() > deadline || this.#service.exitCode !== null) throw new Error('podman does not start');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Stops the service; containers continue to run. */
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

  /** Stops the service with SIGSTOP: until {@link resume}, it accepts connections and does not answer. */
  async pause(): Promise<void> {
    if (this.#service?.pid !== undefined) await stopProcess(this.#service.pid);
  }

  resume(): void {
    this.#service?.kill('SIGCONT');
  }

  /** Makes a port of this machine's loopback reachable at the loopback of Podman's network, for registries. */
  async relay(port: number): Promise<void> {
    this.#relays.push(await PodmanRelay.open(this.folder, this.enter, port));
  }

  /** Ids of all containers, including those that do not run. */
  async containers(): Promise<string[]> {
    return (await this.command('ps', '--all', '--quiet', '--no-trunc')).split('\n').filter((id) => id !== '');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    for (const relay of this.#relays) await relay[Symbol.asyncDispose]();
    const gone = once(this.#holder, 'exit');
    this.#holder.stdin?.end();
    if (this.#holder.exitCode === null) await gone;
  }

  async #loadImages(): Promise<void> {
    const root = join(this.folder, 'image');
    busyboxRoot(root);
    tarOf(root, this.layer);
    const env = ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'];
    const images = [
      [this.pauseImage, { Cmd: ['/bin/sh', '-c', pauseCommand], Env: env }],
      [this.busyboxImage, { Cmd: ['/bin/sh'], Env: env }],
    ] as const;
    for (const [position, [reference, config]] of images.entries()) {
      const archive = join(this.folder, `image-${position}.tar`);
      dockerArchive(join(this.folder, `archive-${position}`), archive, reference, [this.layer], config);
      await this.load(archive);
    }
  }

  #commandLine(args: readonly string[]): [string, ...string[]] {
    const storage = [
      '--root',
      join(this.folder, 'root'),
      '--runroot',
      join(this.folder, 'runroot'),
      '--storage-driver',
      this.#storageDriver,
    ];
    // A shell that runs tests in the background makes them ignore signals, which containers would inherit.
    return [...this.enter, 'env', '--default-signal', 'podman', ...storage, ...args];
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

function environmentOf(folder: string): NodeJS.ProcessEnv {
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    HOME: folder,
    CONTAINERS_CONF: join(folder, 'containers.conf'),
    CONTAINERS_REGISTRIES_CONF: join(folder, 'registries.conf'),
    TMPDIR: join(folder, 'tmp'),
  };
}
