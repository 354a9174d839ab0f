import { type AgentConfig, UsageError } from '@keelson/agent';
import type { AdapterRequest } from '../adapters/load-adapter.ts';
import type { Supervised } from '../supervisor/supervisor-options.ts';

/** The runtime that options and environment select. */
export type RuntimeRequest =
  /** No runtime is selected: the agent detects one. */
  | { readonly kind: 'detect' }
  /** The OCI runtime in a supervisor process. */
  | { readonly kind: 'supervised'; readonly choice: Supervised }
  | { readonly kind: 'adapter'; readonly request: AdapterRequest };

/** Runtimes that the agent detects on a machine, the preferred one first. */
export const detectedRuntimes = ['engine', 'oci', 'process'] as const;
export type DetectedRuntime = (typeof detectedRuntimes)[number];

/** Environment variables that select a runtime; empty or absent: none. */
export interface RuntimeVariables {
  /** `KEELSON_AGENT_RUNTIME`: see {@link AdapterRequest.adapter}. */
  readonly runtime: string | undefined;
  /** `KEELSON_AGENT_RUNTIME_OPTIONS`: a JSON object with the options of that adapter. */
  readonly runtimeOptions: string | undefined;
}

/** The part of the agent's configuration that determines runtime options. */
export type RuntimeConfig = Pick<AgentConfig, 'runtime' | 'images' | 'isolatePids'>;

const runtimeVariable = 'KEELSON_AGENT_RUNTIME';
const optionsVariable = 'KEELSON_AGENT_RUNTIME_OPTIONS';

/**
 * Combines the options of the command line with the environment variables. The variables select a runtime where the
 * options leave the choice open.
 *
 * @throws UsageError when options and variables both select a runtime, and for variables that cannot be parsed
 */
export function runtimeRequest(config: RuntimeConfig, variables: RuntimeVariables): RuntimeRequest {
  const { runtime: choice } = config;
  const adapter = variables.runtime || undefined;
  const text = variables.runtimeOptions || undefined;
  if (text !== undefined && adapter === undefined)
    throw new UsageError(`${optionsVariable} requires ${runtimeVariable}, which selects the runtime`);
  if (adapter !== undefined) {
    if (choice.kind !== 'default') {
      throw new UsageError(`${runtimeVariable}=${adapter} and the options both choose a runtime; leave one out`);
    }
    const options = { ...derivedOptions(config, adapter), ...parsedOptions(text) };
    return {
      kind: 'adapter',
      request: { adapter, options, source: runtimeVariable, optionsSource: optionsVariable },
    };
  }
  switch (choice.kind) {
    case 'default':
      return { kind: 'detect' };
    case 'process':
      return adapterRequest('process', {}, 'the configuration');
    case 'engine':
      return adapterRequest('engine', derivedOptions(config, 'engine'), '--runtime-a-endpoint');
    case 'cri': {
      const { endpoint, imageEndpoint } = choice;
      return adapterRequest('cri', { endpoint, imageEndpoint }, '--container-runtime-endpoint');
    }
    case 'oci': {
      const { path, supervisorEndpoint } = choice;
      if (supervisorEndpoint !== undefined) return { kind: 'supervised', choice: { ...choice, supervisorEndpoint } };
      return adapterRequest('oci', path === undefined ? {} : { binary: path }, '--runtime-b-path');
    }
  }
}

/** The request for a runtime that was detected. */
export function detectedRequest(config: RuntimeConfig, name: DetectedRuntime): AdapterRequest {
  return { adapter: name, options: derivedOptions(config, name), source: '--container-runtime' };
}

/** The socket at which an engine with the Docker Engine API is expected. */
export function engineEndpointOf({ runtime }: RuntimeConfig): string {
  if (runtime.kind === 'default') return runtime.engineEndpoint;
  return runtime.kind === 'engine' ? runtime.endpoint : '';
}

function adapterRequest(adapter: string, options: AdapterRequest['options'], source: string): RuntimeRequest {
  return { kind: 'adapter', request: { adapter, options, source } };
}

/** Options of an adapter that follow from options of the agent. */
function derivedOptions(config: RuntimeConfig, adapter: string): AdapterRequest['options'] {
  if (adapter !== 'engine') return {};
  const { images, isolatePids } = config;
  return { endpoint: engineEndpointOf(config), infraImage: images.infraImage, sharedPid: !isolatePids };
}

function parsedOptions(text: string | undefined): AdapterRequest['options'] {
  if (text === undefined) return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${optionsVariable} is not valid JSON: ${(error as Error).message}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new UsageError(`${optionsVariable} must be a JSON object`);
  return value as AdapterRequest['options'];
}
