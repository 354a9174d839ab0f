import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type {
  ContainerEngine,
  ContainerRuntime,
  RuntimeCapabilities,
  RuntimeStreaming,
} from '@keelson/container-runtime';
import type { ApiClient } from '@keelson/core';
import { FakeClock, type Metrics, silentLogger } from '@keelson/core/runtime';
import type { Pod } from '@keelson/kinds';
import { createFakeRuntime, type FakeScript, FakeWorld } from '@keelson/runtime-fake';
import type { ExecutionContext } from 'ava';
import type { AgentConfig } from '../../src/base/config/agent-config.ts';
import type { AgentPeriods } from '../../src/base/config/agent-periods.ts';
import type { PodChange, PodConfigListener, PodConfigReader } from '../../src/base/contracts/pod-source.ts';
import type { EventRecorder } from '../../src/base/events/event-recorder.ts';
import type { RunProgram } from '../../src/base/run-program.ts';
import type { CgroupAccess } from '../../src/machine/cgroups/node-cgroups.ts';
import type { CpuTopology } from '../../src/machine/cpus/cpu-topology.ts';
import type { HostAccess } from '../../src/machine/host/host-access.ts';
import type { Machine } from '../../src/machine/host/machine.ts';
import type { NodeUsage } from '../../src/machine/stats/node-usage.ts';
import { type Mounter, noMounter } from '../../src/machine/volumes/mounter.ts';
import { createAgent } from '../../src/startup/agent.ts';
import type { Agent } from '../../src/startup/agent-dependencies.ts';
import { parseOptions } from '../../src/startup/options/parse-options.ts';
import { resolveConfig } from '../../src/startup/options/resolve-config.ts';

export const machine: Machine = {
  cores: 4,
  memoryBytes: 8 * 1024 ** 3,
  hostName: 'node-1',
  machineId: 'm',
  systemUuid: 's',
  bootId: 'b',
  kernelVersion: '6',
  osImage: 'Test',
  architecture: 'amd64',
  addresses: ['192.0.2.1'],
};

/** A configuration with the defaults that matter; the parts of a test's interest are replaced. */
export function testConfig(rootDir: string, changes: Partial<AgentConfig> = {}): AgentConfig {
  return {
    nodeName: 'node-1',
    rootDir,
    api: undefined,
    sources: {
      manifestPath: undefined,
      manifestUrl: undefined,
      manifestUrlHeaders: [],
      fileCheckMs: 20_000,
      httpCheckMs: 20_000,
      runOnce: false,
      hostNetwork: ['*'],
      hostPid: ['*'],
      hostIpc: ['*'],
      checkpointPath: undefined,
    },
    server: {
      enabled: true,
      address: '127.0.0.1',
      port: 10_250,
      readOnlyPort: 0,
      healthzAddress: '127.0.0.1',
      healthzPort: 0,
      statsPort: 0,
      debuggingHandlers: true,
      streamingIdleMs: 0,
      contentionProfiling: false,
      tlsCertFile: undefined,
      tlsPrivateKeyFile: undefined,
      certDir: join(rootDir, 'pki'),
      anonymousAuth: true,
      clientCaFile: undefined,
      tokenWebhook: undefined,
      accessWebhook: undefined,
    },
    runtime: { kind: 'process' },
    runtimeRequestTimeoutMs: 120_000,
    isolatePids: true,
    images: {
      infraImage: 'pause',
      pullProgressDeadlineMs: 60_000,
      serializePulls: true,
      registryQps: 0,
      registryBurst: 10,
      gcHighPercent: 85,
      gcLowPercent: 80,
      minimumTtlMs: 120_000,
    },
    network: {
      plugin: '',
      cniBinDir: '',
      cniConfDir: '',
      mtu: 0,
      hairpinMode: 'none',
      podCidr: '',
      makeIptablesUtilChains: false,
      iptablesDropBit: 15,
      iptablesMasqueradeBit: 14,
    },
    dns: { servers: ['10.96.0.10'], domain: 'cluster.local', resolvConf: '' },
    node: {
      ip: undefined,
      labels: { zone: 'a' },
      taints: [],
      providerId: undefined,
      register: true,
      statusUpdateMs: 10_000,
      enableControllerAttachDetach: true,
      cloud: { provider: '', configPath: undefined },
    },
    limits: { maxPods: 110, podsPerCore: 0, allowPrivileged: false },
    allowedUnsafeSysctls: [],
    clusterReserved: {},
    systemReserved: {},
    eviction: {
      thresholds: [],
      maxPodGraceSeconds: 0,
      transitionMs: 300_000,
      watchMemory: false,
      reservesThresholds: true,
    },
    syncMs: 60_000,
    volumeStatsMs: 0,
    volumePluginDir: '',
    mounterPath: undefined,
    checkNodeCapabilities: false,
    containerized: false,
    seccompRoot: '/seccomp',
    cpuCfsQuota: true,
    cgroups: {
      perQos: false,
      driver: 'cgroupfs',
      root: undefined,
      enforce: [],
      clusterReservedGroup: '',
      systemReservedGroup: '',
      reservedMemoryPercent: undefined,
      agentGroup: '',
      runtimeGroup: '',
      systemGroup: '',
      askedBy: undefined,
    },
    cpuManager: { policy: 'none', reconcileMs: 10_000 },
    events: { qps: 0, burst: 10 },
    gates: {},
    process: {
      lockFile: undefined,
      exitOnLockContention: false,
      maxOpenFiles: 1_000_000,
      oomScoreAdj: -999,
      protectKernelDefaults: false,
      reallyCrash: false,
    },
    ...changes,
  };
}

/** The configuration that these options make, on a machine whose files do not matter. */
export function wordsConfig(rootDir: string, words: readonly string[]): AgentConfig {
  const common = ['--hostname-override=node-1', `--root-dir=${rootDir}`, '--resolv-conf='];
  return resolveConfig(parseOptions([...common, ...words]), { hostname: () => 'node-1', fileExists: () => false })
    .config;
}

/** Pods that a test wants, without sources. */
export class TestPods implements PodConfigReader {
  readonly #pods = new Map<string, Pod>();
  readonly #listeners = new Set<PodConfigListener>();
  seen = true;

  subscribe(listener: PodConfigListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  pods(): readonly Pod[] {
    return [...this.#pods.values()];
  }

  seenAllSources(): boolean {
    return this.seen;
  }

  put(...pods: Pod[]): void {
    const changes = pods.map((pod): PodChange => {
      const op = this.#pods.has(pod.metadata?.uid ?? '') ? 'update' : 'add';
      this.#pods.set(pod.metadata?.uid ?? '', pod);
      return { op, pod, source: 'file' };
    });
    for (const listener of this.#listeners) listener('file', changes);
  }

  remove(pod: Pod): void {
    this.#pods.delete(pod.metadata?.uid ?? '');
    for (const listener of this.#listeners) listener('file', [{ op: 'remove', pod, source: 'file' }]);
  }
}

export interface ReportedEvent {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly pod: string;
}

export interface Bench {
  readonly clock: FakeClock;
  readonly world: FakeWorld;
  readonly pods: TestPods;
  readonly agent: Agent;
  /** An engine on the machine of the agent. */
  readonly engine: ContainerEngine;
  readonly events: ReportedEvent[];
  readonly rootDir: string;
  /**
   * Another agent on the same machine, after this one was stopped or abandoned; with another configuration if one
   * is given.
   */
  again(changed?: AgentConfig): Promise<Agent>;
  /** Lets time pass in small steps until the condition holds. @throws after `limitMs` of the fake clock */
  until(condition: () => unknown, limitMs?: number): Promise<void>;
  /** Advances the clock, in steps of 250 ms or of the given size where changes are rarer. */
  pass(ms: number, stepMs?: number): Promise<void>;
  status(pod: Pod): NonNullable<Pod['status']>;
  /** Containers in the world by their name, newest first. */
  containers(name?: string): { readonly id: string; readonly state: string; readonly attempt: number }[];
}

export interface BenchOptions {
  readonly script?: FakeScript;
  readonly config?: Partial<AgentConfig>;
  /** Options of the command line, in place of the configuration above; `config` changes what they make. */
  readonly words?: readonly string[];
  readonly images?: readonly string[];
  /** Containers have logs, which the test writes. */
  readonly logs?: boolean;
  /** Ways into containers; default: none. */
  readonly streaming?: RuntimeStreaming;
  /** Default: nothing may be mounted; `options`: according to the options. */
  readonly mounter?: Mounter | 'options';
  readonly host?: HostAccess;
  readonly runProgram?: RunProgram;
  /** What the runtime can do, where it differs. */
  readonly runtime?: Partial<RuntimeCapabilities>;
  /** What the runtime reports as its name and version. */
  readonly version?: ContainerRuntime['version'];
  readonly topology?: CpuTopology;
  /** Default: cgroups are not used. */
  readonly cgroups?: (config: AgentConfig, clock: FakeClock) => Promise<CgroupAccess | undefined>;
  /** Default: memory and disk are plenty, however full this machine is. */
  readonly nodeUsage?: NodeUsage;
  readonly metrics?: Metrics;
  readonly periods?: Partial<AgentPeriods>;
  readonly random?: () => number;
  readonly api?: ApiClient;
  readonly pull?: ConstructorParameters<typeof FakeWorld>[0] extends infer O
    ? O extends { pull?: infer P }
      ? P
      : never
    : never;
}

/** A machine with 100 GB of disk for everything, nearly empty. */
const plenty: NodeUsage = {
  workingSetBytes: async () => 2 ** 30,
  disk: async () => ({ device: '1', capacityBytes: 1e11, availableBytes: 9e10, inodes: 1e6, inodesFree: 9e5 }),
};

/** Work of the system that does not depend on the clock: opening, reading, writing and closing files, and programs. */
const isWork = (name: string) => name.startsWith('FSReq') || name === 'CloseReq' || name === 'ProcessWrap';

/** Runs all work that needs no time, until `quiet` consecutive turns have none. */
export async function settle(quiet = 12): Promise<void> {
  for (let calm = 0; calm < quiet; ) {
    await new Promise((resolve) => setImmediate(resolve));
    calm = process.getActiveResourcesInfo().some(isWork) ? 0 : calm + 1;
  }
}

/** An agent on a fake machine, under a clock that stands still. */
export async function startBench(t: ExecutionContext, options: BenchOptions = {}): Promise<Bench> {
  const rootDir = await mkdtemp(join(tmpdir(), 'keelson-agent-'));
  t.teardown(() => rm(rootDir, { recursive: true, force: true, maxRetries: 5 }));
  const clock = new FakeClock();
  const {
    script,
    pull,
    images,
    words,
    mounter = noMounter,
    host,
    runProgram,
    nodeUsage = plenty,
    metrics,
    periods = {},
    random = () => 0,
    logs = false,
    streaming = {},
  } = options;
  const world = new FakeWorld({ clock, ...(script && { script }), ...(pull && { pull }), ...(images && { images }) });
  const pods = new TestPods();
  const events: ReportedEvent[] = [];
  const recorder: EventRecorder = {
    record: (subject, type, reason, message) => events.push({ type, reason, message, pod: subject.name }),
  };
  const agentDir = join(rootDir, 'agent');
  const chosen =
    words === undefined ? testConfig(agentDir, options.config) : { ...wordsConfig(agentDir, words), ...options.config };
  const begin = async (config = chosen): Promise<Agent> => {
    const cgroups = await options.cgroups?.(config, clock);
    const engine = createFakeRuntime(world, { logs, streaming, capabilities: options.runtime ?? {} });
    if (options.version) engine.runtime.version = options.version;
    const agent = createAgent(config, {
      ...(cgroups && { cgroups }),
      ...(options.topology && { topology: options.topology }),
      ...engine,
      ...(options.api && { api: options.api }),
      pods,
      machine,
      events: recorder,
      clock,
      logger: silentLogger,
      logRoot: join(rootDir, 'log'),
      ...(mounter !== 'options' && { mounter }),
      ...(host && { host }),
      ...(runProgram && { runProgram }),
      nodeUsage,
      ...(metrics && { metrics }),
      periods,
      random,
    });
    t.teardown(() => agent.stop());
    await agent.start();
    await settle();
    return agent;
  };
  let agent = await begin();
  const pass = async (ms: number, stepMs = 250) => {
    for (let left = ms; left > 0; left -= stepMs) {
      clock.advance(Math.min(stepMs, left));
      await settle(3);
    }
    await settle();
  };
  return {
    clock,
    world,
    pods,
    events,
    rootDir,
    engine: createFakeRuntime(world),
    get agent() {
      return agent;
    },
    async again(changed) {
      agent = await begin(changed);
      return agent;
    },
    pass,
    async until(condition, limitMs = 120_000) {
      for (let passed = 0; ; passed += 250) {
        await settle();
        if (condition()) return;
        if (passed > limitMs) throw new Error(`timed out after ${limitMs} ms: ${condition}`);
        clock.advance(250);
      }
    },
    status: (pod) => agent.state.pods().find(({ metadata }) => metadata?.uid === pod.metadata?.uid)?.status ?? {},
    containers: (name) =>
      [...world.containers.values()]
        .map(({ snapshot }) => ({
          id: snapshot.id,
          state: snapshot.state,
          attempt: snapshot.metadata.attempt,
          name: snapshot.metadata.name,
        }))
        .filter((container) => name === undefined || container.name === name)
        .reverse(),
  };
}

export const namesOf = (pods: readonly Pod[]): string[] => pods.map(({ metadata }) => metadata?.name ?? '');

let uids = 0;

/** A static pod of one container `main`, with changes to its specification. */
export function testPod(name: string, spec: Partial<Pod['spec']> = {}, annotations: Record<string, string> = {}): Pod {
  uids += 1;
  const { containers = [{ name: 'main', image: 'app:1', imagePullPolicy: 'IfNotPresent' }], ...rest } = spec;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${uids}`,
      annotations: { 'kubernetes.io/config.source': 'file', ...annotations },
    },
    spec: { restartPolicy: 'Always', terminationGracePeriodSeconds: 30, nodeName: 'node-1', containers, ...rest },
    status: {},
  };
}
