import { type AgentConfig, MachineError } from '@keelson/agent';
import type { ContainerEngine } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core/runtime';
import { type AdapterRequest, openAdapter } from '../adapters/load-adapter.ts';
import { runtimeContext } from '../adapters/runtime-context.ts';
import { retireSupervisor } from '../supervisor/end-supervisor.ts';
import { openSupervised } from '../supervisor/open-supervised.ts';
import { type Detected, detectRuntime, rememberRuntime } from './detect-runtime.ts';
import { findBinary, probeEngine, probeOci } from './probe-runtimes.ts';
import { detectedRequest, engineEndpointOf, type RuntimeRequest } from './runtime-request.ts';

export interface OpenRuntimeOptions {
  readonly config: AgentConfig;
  readonly request: RuntimeRequest;
  /** Mount point of the cgroup hierarchy; undefined when the agent does not manage cgroups. */
  readonly cgroupMountpoint: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A runtime that is open, and the process that it depends on. */
export interface OpenedRuntime {
  readonly engine: ContainerEngine;
  /** The daemon's endpoint, from the adapter's option `endpoint`; undefined: the runtime has no daemon. */
  readonly endpoint: string | undefined;
  /** True when the runtime is in a supervisor process of this agent. */
  readonly supervised: boolean;
}

/** OCI binaries that the agent uses without being configured to. */
const ociBinaries = ['runc'];

/**
 * Opens the selected runtime and logs which one and why: see docs/reference/agent-rules.md#choice-of-the-runtime.
 *
 * @throws UsageError for an adapter that cannot be loaded or does not accept its options
 * @throws MachineError when the selected runtime cannot work on this machine
 */
export async function openRuntime(options: OpenRuntimeOptions): Promise<OpenedRuntime> {
  const { config, request, clock, logger } = options;
  if (request.kind === 'supervised') {
    logger.info('runtime selected', { runtime: 'oci', reason: 'selected by the configuration' });
    const engine = await openSupervised({ config, clock, logger }, request.choice);
    return { engine, endpoint: undefined, supervised: true };
  }
  // Two engines must not manage the same containers.
  await retireSupervisor(config.rootDir, clock, logger);
  if (request.kind === 'detect') return openDetected(options);
  logger.info('runtime selected', { runtime: request.request.adapter, reason: 'selected by the configuration' });
  return open(options, request.request);
}

async function openDetected(options: OpenRuntimeOptions): Promise<OpenedRuntime> {
  const { config, logger } = options;
  const detected = await detectRuntime(config.rootDir, {
    engine: () => probeEngine(engineEndpointOf(config)),
    oci: () => probeOci(process.getuid?.(), findBinary(ociBinaries)),
  });
  const { opened, name, reason } = await openOrFallBack(options, detected);
  logger.info('runtime selected', { runtime: name, reason });
  await rememberRuntime(config.rootDir, name);
  return opened;
}

/**
 * A binary that answers its version may still be unable to run containers on this machine. The process runtime is used
 * then, unless the OCI runtime already has pods here from an earlier start.
 */
async function openOrFallBack(options: OpenRuntimeOptions, { name, reason, remembered }: Detected) {
  try {
    return { opened: await open(options, detectedRequest(options.config, name)), name, reason };
  } catch (error) {
    if (name !== 'oci' || remembered || !(error instanceof MachineError)) throw error;
    const opened = await open(options, detectedRequest(options.config, 'process'));
    return { opened, name: 'process' as const, reason: `${reason}, but ${error.message}` };
  }
}

async function open(
  { config, cgroupMountpoint, clock, logger }: OpenRuntimeOptions,
  request: AdapterRequest,
): Promise<OpenedRuntime> {
  const { perQos, root } = config.cgroups;
  const mountpoint = perQos || root !== undefined ? cgroupMountpoint : undefined;
  const engine = await openAdapter(request, (adapter) =>
    runtimeContext({ config, cgroupMountpoint: mountpoint, clock, logger }, adapter),
  );
  const { endpoint } = request.options;
  return { engine, endpoint: typeof endpoint === 'string' ? endpoint : undefined, supervised: false };
}
