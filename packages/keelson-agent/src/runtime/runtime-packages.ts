import { join } from 'node:path';
import { type AgentConfig, openNetwork, type RuntimeChoice } from '@keelson/agent';
import type { NetworkPlugin } from '@keelson/container-network';
import type { ContainerEngine } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core';

export interface RuntimeSurroundings {
  readonly config: AgentConfig;
  /** Undefined: cgroups are left alone, where the runtime can do without. */
  readonly cgroupMountpoint?: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

type ChoiceOf<K extends RuntimeChoice['kind']> = Extract<RuntimeChoice, { kind: K }>;

/** What all packages take. */
interface Common {
  readonly nodeIp?: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Part of the configuration is enough for the OCI engine: its supervisor has no more. */
export interface OciSurroundings {
  readonly config: Pick<AgentConfig, 'rootDir' | 'api' | 'network'> & {
    readonly node: Pick<AgentConfig['node'], 'ip'>;
  };
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What both ends of a connection show and must see, all of it PEM. */
export interface PinnedTls {
  readonly key: string;
  readonly certificate: string;
  readonly peer: string;
}

/** An engine, and the TCP port at which it is served. */
export interface ServeAtPortOptions {
  readonly engine: ContainerEngine;
  readonly host: string;
  readonly port: number;
  readonly tls: PinnedTls;
  readonly logger: Logger;
}

/** An engine, and the unix socket at which it is served. */
export interface ServeOptions {
  readonly engine: ContainerEngine;
  readonly socketPath: string;
  readonly logger: Logger;
}

/**
 * The parts of the packages that are used here. Packages are loaded by name, when they are chosen, so that nobody pays
 * for the others.
 */
interface Packages {
  '@keelson/runtime-process': {
    createProcessRuntime(
      options: Common & {
        readonly stateDirectory: string;
        readonly imageSources: readonly string[];
        readonly registries: object;
        readonly cgroups?: { readonly mountpoint: string };
      },
    ): Promise<ContainerEngine>;
  };
  '@keelson/runtime-oci': {
    createOciRuntime(
      options: Common & {
        readonly binary?: string;
        readonly stateDirectory: string;
        readonly imageSources: readonly string[];
        readonly registries: object;
        readonly network?: NetworkPlugin;
      },
    ): Promise<ContainerEngine>;
  };
  '@keelson/runtime-engine': {
    createEngineRuntime(
      options: Common & {
        readonly endpoint: string;
        readonly infraImage: string;
        readonly sharedPid: boolean;
        readonly owner: string;
        readonly stateDirectory: string;
        readonly network?: NetworkPlugin;
      },
    ): Promise<ContainerEngine>;
  };
  '@keelson/runtime-cri': {
    createCriRuntime(
      options: Common & {
        readonly endpoint: string;
        readonly imageEndpoint?: string;
        readonly tls?: PinnedTls;
        readonly probeTimeoutMs?: number;
      },
    ): Promise<ContainerEngine>;
    serveCri(options: ServeOptions): Promise<AsyncDisposable>;
    serveCriAtPort(options: ServeAtPortOptions): Promise<AsyncDisposable>;
  };
}

async function load<N extends keyof Packages>(name: N): Promise<Packages[N]> {
  return (await import(name)) as Packages[N];
}

function common({ config, clock, logger }: OciSurroundings, kind: RuntimeChoice['kind']): Common {
  const { ip } = config.node;
  return { ...(ip === undefined ? {} : { nodeIp: ip }), clock, logger: logger.child({ component: `runtime-${kind}` }) };
}

function network({ config, clock, logger }: OciSurroundings): { readonly network?: NetworkPlugin } {
  const plugin = openNetwork(config, { clock, logger });
  return plugin === undefined ? {} : { network: plugin };
}

/** Without a mount point limits of containers have no effect. */
export async function openProcess(around: RuntimeSurroundings): Promise<ContainerEngine> {
  const { createProcessRuntime } = await load('@keelson/runtime-process');
  const { config, cgroupMountpoint: mountpoint } = around;
  const { rootDir, cgroups } = config;
  const placed = mountpoint !== undefined && (cgroups.perQos || cgroups.root !== undefined);
  return createProcessRuntime({
    stateDirectory: join(rootDir, 'runtime'),
    imageSources: [join(rootDir, 'images')],
    registries: {},
    ...(placed && { cgroups: { mountpoint } }),
    ...common(around, 'process'),
  });
}

export async function openOci(
  around: OciSurroundings,
  { path }: Pick<ChoiceOf<'oci'>, 'path'>,
): Promise<ContainerEngine> {
  const { createOciRuntime } = await load('@keelson/runtime-oci');
  const { rootDir } = around.config;
  return createOciRuntime({
    ...(path === undefined ? {} : { binary: path }),
    stateDirectory: join(rootDir, 'runtime-oci'),
    imageSources: [join(rootDir, 'images')],
    registries: {},
    ...network(around),
    ...common(around, 'oci'),
  });
}

/** Of several agents at one engine each has its own containers: those of its node's name. */
export async function openDockerEngine(
  around: RuntimeSurroundings,
  { endpoint }: ChoiceOf<'engine'>,
): Promise<ContainerEngine> {
  const { createEngineRuntime } = await load('@keelson/runtime-engine');
  const { rootDir, images, isolatePids, nodeName } = around.config;
  return createEngineRuntime({
    endpoint,
    infraImage: images.infraImage,
    sharedPid: !isolatePids,
    owner: nodeName.replace(/[^\w.-]/g, '-'),
    stateDirectory: join(rootDir, 'runtime-engine'),
    ...network(around),
    ...common(around, 'engine'),
  });
}

/** The daemon behind the endpoint makes the networks of its pods itself. */
export async function openCri(
  around: RuntimeSurroundings,
  { endpoint, imageEndpoint }: ChoiceOf<'cri'>,
): Promise<ContainerEngine> {
  const { createCriRuntime } = await load('@keelson/runtime-cri');
  return createCriRuntime({ endpoint, imageEndpoint, ...common(around, 'cri') });
}

/** A supervisor that was just started may be busy. */
const supervisorTimeoutMs = 15_000;

/** The engine that another process serves at a port, with TLS. */
export async function openServed(
  around: OciSurroundings,
  { endpoint, tls }: { readonly endpoint: string; readonly tls: PinnedTls },
): Promise<ContainerEngine> {
  const { createCriRuntime } = await load('@keelson/runtime-cri');
  return createCriRuntime({ endpoint, tls, probeTimeoutMs: supervisorTimeoutMs, ...common(around, 'oci') });
}

/** Serves an engine as CRI at a port, with TLS. */
export async function serveAtPort(options: ServeAtPortOptions): Promise<AsyncDisposable> {
  const { serveCriAtPort } = await load('@keelson/runtime-cri');
  return serveCriAtPort(options);
}

/** Serves an engine as CRI at a unix socket. */
export async function serveRuntime(options: ServeOptions): Promise<AsyncDisposable> {
  const { serveCri } = await load('@keelson/runtime-cri');
  return serveCri(options);
}
