import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { cpuSeconds, residentBytes } from '../measure/cpu-time.ts';
import { cores, endedWithParent, pinned } from '../measure/spawned.ts';

const binary = fileURLToPath(
  new URL('../../../../packages/keelson-agent/dist/src/bin/keelson-agent.js', import.meta.url),
);
const waitMs = 60_000;

async function until(what: string, probe: () => Promise<boolean>): Promise<void> {
  for (const deadline = performance.now() + waitMs; performance.now() < deadline; ) {
    if (await probe()) return;
    await sleep(5);
  }
  throw new Error(`timed out after ${waitMs / 1000} s: ${what}`);
}

/** A real `keelson-agent` on the process runtime, alone, with a folder of manifests. */
export class ProcessNode {
  readonly #folder: string;
  readonly #child: ChildProcess;
  #pods = 0;

  private constructor(folder: string, child: ChildProcess) {
    this.#folder = folder;
    this.#child = child;
  }

  static async start(): Promise<ProcessNode> {
    const folder = await mkdtemp(join(tmpdir(), 'keelson-bench-node-'));
    await mkdir(join(folder, 'manifests'));
    const words = [
      binary,
      `--pod-manifest-path=${join(folder, 'manifests')}`,
      `--root-dir=${join(folder, 'root')}`,
      '--enable-server=false',
      '--read-only-port=0',
      '--healthz-port=0',
      '--stats-port=0',
      '--hostname-override=bench',
      '--fail-swap-on=false',
      '--make-iptables-util-chains=false',
      '--eviction-hard=',
    ];
    const [program, all] = pinned(cores.subject, process.execPath, words);
    const env = {
      ...process.env,
      KEELSON_AGENT_RUNTIME: 'process',
      KEELSON_AGENT_LOG_ROOT: join(folder, 'log'),
      // The settings of this machine's kernel and its cgroups stay as they are.
      KEELSON_AGENT_SYSCTL_ROOT: '/nonexistent',
      KEELSON_AGENT_CGROUP_ROOT: '/nonexistent',
    };
    const child = endedWithParent(spawn(program, all, { env, stdio: ['ignore', 'ignore', 'ignore'] }));
    const node = new ProcessNode(folder, child);
    await until('the agent began', () => exists(join(folder, 'root', 'runtime', 'containers')));
    return node;
  }

  /**
   * Drops a manifest; resolves with the milliseconds until its container wrote a file, by the clock of the file system.
   */
  async run(): Promise<number> {
    this.#pods += 1;
    const name = `pod-${this.#pods}`;
    const mark = join(this.#folder, `${name}.runs`);
    const manifest = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: {
        hostNetwork: true,
        terminationGracePeriodSeconds: 0,
        containers: [
          {
            name: 'main',
            image: 'host',
            imagePullPolicy: 'Never',
            command: ['/bin/sh', '-c', `: > ${mark}; exec sleep 3600`],
          },
        ],
      },
    };
    const path = join(this.#folder, 'manifests', `${name}.json`);
    await writeFile(`${this.#folder}/${name}.new`, JSON.stringify(manifest));
    const at = Date.now();
    await rename(`${this.#folder}/${name}.new`, path);
    await until('the container runs', () => exists(mark));
    return (await stat(mark)).mtimeMs - at;
  }

  /** CPU seconds of the agent alone. */
  cpu(): number {
    return cpuSeconds(this.#child.pid ?? 0);
  }

  memory(): number {
    return residentBytes(this.#child.pid ?? 0);
  }

  async stop(): Promise<void> {
    await rm(join(this.#folder, 'manifests'), { recursive: true });
    const containers = join(this.#folder, 'root', 'runtime', 'containers');
    await until('all containers ended', async () => (await readdir(containers).catch(() => [])).length === 0);
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGTERM');
    await ended;
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
