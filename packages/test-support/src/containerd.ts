import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { bridgeNetwork, containerdConfig } from './containerd-config.ts';
import { busyboxRoot } from './containerd-images.ts';
import { findProgram, installPrograms } from './debian-packages.ts';
import { dockerArchive, tarOf } from './image-builder.ts';

/**
 * Waits for the end of its input and then removes everything of a containerd: processes that have its folder in their
 * command line (the daemon, its shims) with their children (the containers), mounts, cgroups, the bridge `$2` and the
 * folder `$1`.
 */
export const cleanUpScript = `
read -r word
folder=$1 bridge=$2
for round in 1 2 3; do
  for file in $(grep -lsF "$folder/" /proc/[0-9]*/cmdline); do
    pid=\${file#/proc/} pid=\${pid%/cmdline}
    [ "$pid" = $$ ] && continue
    tr '\\0' ' ' < "$file" | grep -qE '^[^ ]*containerd' || continue
    kill -9 $(cat /proc/$pid/task/*/children) $pid
  done
done
for id in $(ls "$folder"/state/io.containerd.runtime.v2.task/k8s.io); do
  for cgroup in /sys/fs/cgroup/k8s.io/$id /sys/fs/cgroup/*/k8s.io/$id; do
    for round in 1 2 3 4 5 6 7 8 9; do [ ! -d "$cgroup" ] || rmdir "$cgroup" || sleep 0.1; done
  done
done
rmdir /sys/fs/cgroup/k8s.io /sys/fs/cgroup/*/k8s.io
while mount=$(grep -F " $folder/" /proc/self/mounts | tail -n 1 | cut -d ' ' -f 2) && [ -n "$mount" ]; do
  umount -l "$mount" || break
done
ip link delete "$bridge"
rm -rf "$folder"
`;

const programs = ['containerd', 'ctr', 'runc', 'busybox', 'ip', '../lib/cni/bridge'];
const packages = ['containerd', 'runc', 'busybox-static', 'iproute2', 'containernetworking-plugins'];

/**
 * Why there can be no {@link Containerd} here, after what is missing was installed where that is possible; empty when
 * there can.
 *
 * @throws Error in continuous integration when there can be none: there a skipped test is a failure
 */
export function lackingForContainerd(): readonly string[] {
  if (process.getuid?.() === 0) return installPrograms(programs, packages);
  if (process.env['CI']) throw new Error('tests of containerd need root');
  return ['root'];
}

const pauseImage = 'local.test/pause:1';
const startMs = 30_000;

export interface ContainerdOptions {
  /**
   * The daemon's program; its shim must be in the same folder. Default: `KEELSON_TEST_CONTAINERD`, else the one in the
   * PATH.
   */
  readonly program?: string;
}

/**
 * A containerd for one test, with CRI on its own socket and all its data in one folder. Pods get addresses on a
 * separate bridge without a gateway, so that no setting and no firewall of the machine is changed. Everything is
 * removed when it is disposed of, and when the test process ends.
 */
export class Containerd implements AsyncDisposable {
  /** An image with a shell and the usual tools in `/bin`, and with `/suite-file`, which contains `original`. */
  readonly busyboxImage = 'local.test/busybox:1';
  readonly folder: string;
  readonly socket: string;
  /** Tar file of the only layer of {@link busyboxImage}, for other images. */
  readonly layer: string;
  readonly #program: string;
  readonly #guard: ChildProcess;
  #daemon: ChildProcess | undefined;

  private constructor(options: ContainerdOptions) {
    this.#program = options.program ?? (process.env['KEELSON_TEST_CONTAINERD'] || findProgram('containerd')) ?? '';
    // Paths of sockets are limited in length.
    this.folder = mkdtempSync('/tmp/keelson-ctd-');
    this.socket = join(this.folder, 'd.sock');
    this.layer = join(this.folder, 'layer.tar');
    const bridge = `kt${randomBytes(5).toString('hex')}`;
    mkdirSync(join(this.folder, 'net.d'));
    writeFileSync(
      join(this.folder, 'config.toml'),
      containerdConfig({ folder: this.folder, socket: this.socket, pauseImage }),
    );
    writeFileSync(join(this.folder, 'net.d', '10-bridge.conflist'), bridgeNetwork(bridge, this.folder));
    this.#guard = spawn('/bin/sh', ['-c', cleanUpScript, 'clean-up', this.folder, bridge], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    });
    this.#guard.unref();
    this.#guard.stdin?.on('error', () => {});
  }

  /** A daemon with the images of a pause container and of a shell. */
  static async start(options: ContainerdOptions = {}): Promise<Containerd> {
    const containerd = new Containerd(options);
    try {
      await containerd.start();
      containerd.#buildImages();
      return containerd;
    } catch (error) {
      await containerd[Symbol.asyncDispose]();
      throw error;
    }
  }

  get endpoint(): string {
    return `unix://${this.socket}`;
  }

  /** Process ID of the running daemon. */
  get pid(): number {
    const pid = this.#daemon?.pid;
    if (pid === undefined) throw new Error('containerd does not run');
    return pid;
  }

  /** Starts the daemon, again after {@link stop}; resolves when it can be connected to. */
  async start(): Promise<void> {
    const log = openSync(join(this.folder, 'log'), 'a');
    const path = [join(this.#program, '..'), process.env['PATH'], '/usr/sbin', '/sbin'].join(':');
    // This process may ignore signals, which containers would inherit: `--default-signal` resets them.
    const daemon = spawn('env', ['--default-signal', this.#program, '--config', join(this.folder, 'config.toml')], {
      stdio: ['ignore', log, log],
      env: { ...process.env, PATH: path },
    });
    this.#daemon = daemon;
    daemon.unref();
    const deadline = performance.now() + startMs;
    while (!(await this.#answers())) {
      if (daemon.exitCode !== null || performance.now() > deadline)
        throw new Error(`containerd did not start:\n${this.log().slice(-4000)}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Ends the daemon; containers continue to run. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const daemon = this.#daemon;
    this.#daemon = undefined;
    if (daemon === undefined || daemon.exitCode !== null || daemon.signalCode !== null) return;
    const ended = once(daemon, 'exit');
    daemon.ref();
    daemon.kill(signal);
    await ended;
  }

  /** Runs containerd's own client in the namespace of CRI and returns its output. */
  ctr(...args: string[]): string {
    const ctr = findProgram('ctr') ?? 'ctr';
    return execFileSync(ctr, ['-a', this.socket, '-n', 'k8s.io', ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }

  log(): string {
    return readFileSync(join(this.folder, 'log'), 'utf8');
  }

  /** Ends the daemon and all containers, and removes every trace. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop('SIGKILL');
    const gone = once(this.#guard, 'exit');
    this.#guard.ref();
    this.#guard.stdin?.end();
    await gone;
  }

  async #answers(): Promise<boolean> {
    const socket = createConnection(this.socket);
    try {
      await once(socket, 'connect');
      return true;
    } catch {
      return false;
    } finally {
      socket.destroy();
    }
  }

  #buildImages(): void {
    const root = join(this.folder, 'busybox');
    busyboxRoot(root);
    tarOf(root, this.layer);
    const config = { Env: ['PATH=/bin'] };
    const pause = { ...config, Entrypoint: ['/bin/sh', '-c', 'while :; do sleep 1000000; done'] };
    for (const [reference, settings] of [
      [this.busyboxImage, config],
      [pauseImage, pause],
    ] as const) {
      const archive = join(this.folder, 'image.tar');
      dockerArchive(join(this.folder, 'archive'), archive, reference, [this.layer], settings);
      this.ctr('images', 'import', archive);
    }
  }
}
