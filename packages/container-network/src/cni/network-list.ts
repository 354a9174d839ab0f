import { isJsonObject } from '@keelson/core/internal';
import { NetworkError } from '../network-error.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

/** Configuration of one plugin of a network. */
export interface PluginConfig {
  /** Name of the plugin's program. */
  readonly type: string;
  /** Capabilities for which the plugin expects arguments on each call. */
  readonly capabilities: ReadonlySet<string>;
  readonly document: JsonObject;
}

/** A network: a list of plugins that are called in order. */
export interface NetworkList {
  readonly name: string;
  readonly cniVersion: string;
  readonly disableCheck: boolean;
  readonly plugins: readonly PluginConfig[];
  /** The list as JSON document, which `networkListOf` accepts. */
  readonly document: JsonObject;
}

/** Supported versions of CNI. The first is the default of configurations without a version. */
export const cniVersions = ['0.1.0', '0.2.0', '0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'] as const;

/** True when `version` is not older than `other`; both are in {@link cniVersions}. */
export function atLeast(version: string, other: (typeof cniVersions)[number]): boolean {
  return (cniVersions as readonly string[]).indexOf(version) >= cniVersions.indexOf(other);
}

const invalid = (problem: string, cause?: unknown) => new NetworkError('InvalidArgument', problem, { cause });

/**
 * Parses a network configuration: a list of plugins, or a single plugin, independent of the file name.
 *
 * @throws NetworkError `InvalidArgument`
 */
export function parseNetworkList(text: string): NetworkList {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    throw invalid(error instanceof Error ? `invalid JSON: ${error.message}` : 'invalid JSON', error);
  }
  if (!isJsonObject(document)) throw invalid('no JSON object');
  if (document['plugins'] !== undefined) return networkListOf(document);
  const { name, cniVersion, ...plugin } = document;
  return networkListOf({ ...(cniVersion !== undefined && { cniVersion }), name, plugins: [plugin] });
}

/** The network of a JSON document. @throws NetworkError `InvalidArgument` for an invalid document. */
export function networkListOf(document: JsonObject): NetworkList {
  const { name, cniVersion = '0.1.0', disableCheck = false, plugins } = document;
  if (typeof name !== 'string' || !/^[A-Za-z0-9][\w.-]*$/.test(name)) throw invalid('the network has no valid "name"');
  if (!(cniVersions as readonly unknown[]).includes(cniVersion)) {
    throw invalid(`"cniVersion" ${JSON.stringify(cniVersion)} is not one of ${cniVersions.join(', ')}`);
  }
  if (!Array.isArray(plugins) || plugins.length === 0) throw invalid('"plugins" is no list of plugins');
  return {
    name,
    cniVersion: String(cniVersion),
    disableCheck: disableCheck === true,
    plugins: plugins.map(pluginConfig),
    document,
  };
}

function pluginConfig(document: unknown, position: number): PluginConfig {
  const type = isJsonObject(document) ? document['type'] : undefined;
  // The program is searched in the plugin folders. A path would escape from them.
  if (
    !isJsonObject(document) ||
    typeof type !== 'string' ||
    type === '' ||
    type.includes('/') ||
    type.startsWith('.')
  ) {
    throw invalid(`plugin ${position + 1} has no valid "type"`);
  }
  const declared = isJsonObject(document['capabilities']) ? Object.entries(document['capabilities']) : [];
  return { type, capabilities: new Set(declared.filter(([, on]) => on === true).map(([name]) => name)), document };
}
