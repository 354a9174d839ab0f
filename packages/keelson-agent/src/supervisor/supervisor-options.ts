import { dirname, isAbsolute, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type AgentConfig, agentVersion, type NetworkConfig, type RuntimeChoice } from '@keelson/agent';
import { isJsonObject } from '@keelson/core/internal';

/** The options of a supervisor. One that runs with options other than the agent's is replaced. */
export interface SupervisorOptions {
  /**
   * Version and program path of the agent that started it: after an update of the agent the supervisor is replaced by
   * one of the new version.
   */
  readonly version: string;
  readonly program: string;
  readonly nodeName: string;
  readonly rootDir: string;
  readonly host: string;
  readonly port: number;
  /** Path of the OCI runtime's binary. Absent: the first one in PATH. */
  readonly binary?: string;
  readonly nodeIp?: string;
  /** Configuration of the pod network. Absent: pods are on the network of the machine. */
  readonly network?: NetworkConfig;
}

/** Path of the supervisor program. */
export const supervisorProgram = fileURLToPath(import.meta.resolve('#supervisor'));

/** The configuration that selects runtime-b with a supervisor. */
export type Supervised = Extract<RuntimeChoice, { kind: 'oci' }> & { readonly supervisorEndpoint: string };

/**
 * Derives the options of the supervisor from the configuration of the agent. Paths become absolute, because the two
 * processes may have different working directories.
 */
export function supervisorOptions(
  config: Pick<AgentConfig, 'nodeName' | 'rootDir' | 'network' | 'api'> & {
    readonly node: Pick<AgentConfig['node'], 'ip'>;
  },
  { path, supervisorEndpoint }: Supervised,
): SupervisorOptions {
  const { network, api, node } = config;
  const binary = path !== undefined && !isAbsolute(path) && dirname(path) !== '.' ? resolve(path) : path;
  return {
    version: agentVersion,
    program: supervisorProgram,
    nodeName: config.nodeName,
    rootDir: resolve(config.rootDir),
    ...addressOf(supervisorEndpoint),
    ...(binary !== undefined && { binary }),
    ...(node.ip !== undefined && { nodeIp: node.ip }),
    ...(network.plugin !== '' && { network: networkOptions(network, api === undefined) }),
  };
}

/** `localhost` becomes one address, so that no other process can listen at the second one. */
function addressOf(endpoint: string): { host: string; port: number } {
  const { hostname, port } = new URL(`tcp://${endpoint}`);
  const host = hostname === 'localhost' ? '127.0.0.1' : hostname.replace(/^\[|\]$/g, '');
  return { host, port: Number(port) };
}

function networkOptions(network: NetworkConfig, standalone: boolean): NetworkConfig {
  const folders = network.cniBinDir.split(',').filter((folder) => folder !== '');
  return {
    ...network,
    cniBinDir: folders.map((folder) => resolve(folder)).join(','),
    cniConfDir: resolve(network.cniConfDir),
    // With an API server the range of pod addresses is known later; the agent then sends it by a call.
    podCidr: standalone ? network.podCidr : '',
    // The agent itself manages the iptables chains.
    makeIptablesUtilChains: false,
  };
}

/** Parses the result of {@link supervisorOptions}. @throws Error for any other text */
export function parseSupervisorOptions(text: string | undefined): SupervisorOptions {
  const value: unknown = JSON.parse(text ?? 'null');
  if (!isJsonObject(value) || typeof value['rootDir'] !== 'string' || typeof value['port'] !== 'number')
    throw new Error('this program is started by keelson-agent, which passes its options as the only argument');
  return value as unknown as SupervisorOptions;
}

/** `127.0.0.1:15441`, `[::1]:15441`. */
export function endpointText({ host, port }: Pick<SupervisorOptions, 'host' | 'port'>): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
