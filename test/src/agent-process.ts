import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Pod } from '@keelson/kinds';
import { freePort } from '@keelson/test-support';
import { eventually } from '@keelson/testing';
import { cleanEnvironment } from './keelson-process.ts';

const binary = fileURLToPath(new URL('../../../packages/keelson-agent/dist/bundle/keelson-agent.js', import.meta.url));
const endMs = 30_000;

/** A `keelson-agent` in a process of its own. */
export interface AgentProcess {
  readonly pid: number;
  /** Resolves to the exit code when it has ended, by itself or not. */
  readonly exited: Promise<number | null>;
  /** Its output on stderr so far. */
  stderr(): string;
  /** Pods as its read-only port returns them; empty while it does not respond. */
  pods(): Promise<readonly Pod[]>;
  /** SIGTERM; resolves to the exit code. */
  stop(): Promise<number | null>;
  /** SIGKILL; resolves when the process has ended. */
  kill(): Promise<void>;
}

/** A host whose agents start and end; its containers are processes, unless specified otherwise. */
export class AgentMachine {
  readonly dir: string;
  readonly nodeName: string;
  readonly #words: readonly string[];
  readonly #port: number;
  readonly #runtime: string;
  #last: AgentProcess | undefined;

  private constructor(dir: string, nodeName: string, words: readonly string[], port: number, runtime: string) {
    this.dir = dir;
    this.nodeName = nodeName;
    this.#words = words;
    this.#port = port;
    this.#runtime = runtime;
  }

  /** `dir` must be empty; words are further options, `runtime` is empty where these name one. */
  static async create(
    dir: string,
    nodeName: string,
    words: readonly string[] = [],
    runtime = 'process',
  ): Promise<AgentMachine> {
    await mkdir(join(dir, 'manifests'));
    return new AgentMachine(dir, nodeName, words, await freePort(), runtime);
  }

  get manifests(): string {
    return join(this.dir, 'manifests');
  }

  get readOnlyPort(): number {
    return this.#port;
  }

  /** `further` replace the options that all agents of the host have. */
  start(further = this.#words, runtime = this.#runtime): AgentProcess {
    const words = [
      `--pod-manifest-path=${this.manifests}`,
      '--file-check-frequency=1s',
      `--root-dir=${join(this.dir, 'root')}`,
      `--cert-dir=${join(this.dir, 'pki')}`,
      '--address=127.0.0.1',
      '--enable-server=false',
      `--read-only-port=${this.#port}`,
      '--healthz-port=0',
      '--stats-port=0',
      `--hostname-override=${this.nodeName}`,
      '--fail-swap-on=false',
      '--make-iptables-util-chains=false',
      // The load of this machine has no effect.
      '--eviction-hard=',
      ...further,
    ];
    const env = cleanEnvironment({
      KEELSON_AGENT_RUNTIME: runtime,
      KEELSON_AGENT_LOG_ROOT: join(this.dir, 'log'),
      // The kernel settings and cgroups of the host are not changed.
      KEELSON_AGENT_SYSCTL_ROOT: '/nonexistent',
      KEELSON_AGENT_CGROUP_ROOT: '/nonexistent',
    });
    const child = spawn(process.execPath, [binary, ...words], { env, stdio: ['ignore', 'ignore', 'pipe'] });
    this.#last = toAgent(child, this.#port);
    return this.#last;
  }

  /** Creates a file in the folder of manifests atomically. */
  async drop(name: string, text: string): Promise<void> {
    await writeFile(join(this.manifests, `.${name}`), text);
    await rename(join(this.manifests, `.${name}`), join(this.manifests, name));
  }

  /** Ends all static pods and then the agent; monitors of containers end with their files. */
  async clear(): Promise<void> {
    for (const name of await readdir(this.manifests)) await rm(join(this.manifests, name), { recursive: true });
    for (const runtime of ['runtime', 'runtime-oci']) {
      const containers = join(this.dir, 'root', runtime, 'containers');
      await eventually(async () => (await readdir(containers).catch(() => [])).length === 0, endMs);
    }
    await this.#last?.stop();
    await rm(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

function toAgent(child: ChildProcess, port: number): AgentProcess {
  let stderr = '';
  child.stderr?.on('data', (chunk) => {
    stderr += String(chunk);
  });
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  return {
    pid: child.pid ?? 0,
    exited,
    stderr: () => stderr,
    async pods() {
      const answer = await fetch(`http://127.0.0.1:${port}/pods`).catch(() => undefined);
      return answer === undefined ? [] : (((await answer.json()) as { items?: Pod[] }).items ?? []);
    },
    stop() {
      child.kill('SIGTERM');
      return exited;
    },
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/**
 * A pod whose only container writes its process id to a file and waits. In commands of pods `$$` stands for one `$`.
 */
export function waitingPod(name: string, pidFile: string, spec: Partial<Pod['spec']> = {}): Pod {
  const script = `echo $$$$ > ${pidFile}.new; mv ${pidFile}.new ${pidFile}; exec sleep 600`;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      hostNetwork: true,
      terminationGracePeriodSeconds: 1,
      containers: [{ name: 'main', image: 'host', imagePullPolicy: 'Never', command: ['/bin/sh', '-c', script] }],
      ...spec,
    },
  } as Pod;
}
