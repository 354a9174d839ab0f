import { dirname, isAbsolute, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type AgentConfig, agentVersion, type NetworkConfig, type RuntimeChoice } from '@keelson/agent';
import { isRecord } from './is-record.ts';

/** Everything a supervisor is started with. One that runs with other options than the agent's is replaced. */
export interface SupervisorOptions {
  /**
   * Of the agent that started it, and where that agent's program is: after an update the next one is of the new
   * version.
   */
  readonly version: string;
  readonly program: string;
  readonly nodeName: string;
  readonly rootDir: string;
  readonly host: string;
  readonly port: number;
  /** Absent: the first in PATH. */
  readonly binary?: string;
  readonly nodeIp?: string;
  /** Absent: pods are on the network of the machine. */
  readonly network?: NetworkConfig;
}

/** The script that is the supervisor. */
export const supervisorProgram = fileURLToPath(new URL('../bin/keelson-supervisor.js', import.meta.url));

/** The choice of runtime-b. */
export type Supervised = Extract<RuntimeChoice, { kind: 'oci' }> & { readonly supervisorEndpoint: string };

/**
 * What the agent's configuration means for its supervisor. Paths are made absolute: the two may have different working
 * directories.
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

/** `localhost` is one address, so that nobody else can listen at the other one. */
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
    // Told by a call when the API server says it.
    podCidr: standalone ? network.podCidr : '',
    // The agent's own doing.
    makeIptablesUtilChains: false,
  };
}

/** Reads what {@link supervisorOptions} made. @throws Error for anything else */
export function parseSupervisorOptions(text: string | undefined): SupervisorOptions {
  const value: unknown = JSON.parse(text ?? 'null');
  if (!isRecord(value) || typeof value['rootDir'] !== 'string' || typeof value['port'] !== 'number')
    throw new Error('the one word of this program is what a keelson-agent gives it');
  return value as unknown as SupervisorOptions;
}

/** `127.0.0.1:15441`, `[::1]:15441`. */
export function endpointText({ host, port }: Pick<SupervisorOptions, 'host' | 'port'>): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
