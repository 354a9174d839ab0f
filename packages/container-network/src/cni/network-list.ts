import { NetworkError } from '../network-error.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

/** One plugin of a network, as the file has it. */
export interface PluginConfig {
  /** The name of its program. */
  readonly type: string;
  /** What it wants to be told at each call, of what its runtime knows. */
  readonly capabilities: ReadonlySet<string>;
  readonly document: JsonObject;
}

/** A network: plugins that are called one after another. */
export interface NetworkList {
  readonly name: string;
  readonly cniVersion: string;
  readonly disableCheck: boolean;
  readonly plugins: readonly PluginConfig[];
  /** The list as one document, from which `networkListOf` makes it again. */
  readonly document: JsonObject;
}

/** Versions of the protocol in use; a configuration without one means the first. */
export const cniVersions = ['0.1.0', '0.2.0', '0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'] as const;

/** True when `version` is not older than `other`; both are in {@link cniVersions}. */
export function atLeast(version: string, other: (typeof cniVersions)[number]): boolean {
  return (cniVersions as readonly string[]).indexOf(version) >= cniVersions.indexOf(other);
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const invalid = (problem: string, cause?: unknown) => new NetworkError('InvalidArgument', problem, { cause });

/**
 * Reads a file of a network: a list of plugins, or one plugin alone, whatever the file's name says.
 *
 * @throws NetworkError `InvalidArgument`
 */
export function parseNetworkList(text: string): NetworkList {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    throw invalid(error instanceof Error ? `no JSON: ${error.message}` : 'no JSON', error);
  }
  if (!isObject(document)) throw invalid('no JSON object');
  if (document['plugins'] !== undefined) return networkListOf(document);
  const { name, cniVersion, ...plugin } = document;
  return networkListOf({ ...(cniVersion !== undefined && { cniVersion }), name, plugins: [plugin] });
}

/** @throws NetworkError `InvalidArgument` when the document is no list of plugins that could be called */
export function networkListOf(document: JsonObject): NetworkList {
  const { name, cniVersion = '0.1.0', disableCheck = false, plugins } = document;
  if (typeof name !== 'string' || !/^[A-Za-z0-9][\w.-]*$/.test(name)) throw invalid('the network has no usable "name"');
  if (!(cniVersions as readonly unknown[]).includes(cniVersion)) {
    throw invalid(`"cniVersion" ${JSON.stringify(cniVersion)} is none of ${cniVersions.join(', ')}`);
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
  const type = isObject(document) ? document['type'] : undefined;
  // The type is looked up in folders: a path would lead out of them.
  if (!isObject(document) || typeof type !== 'string' || type === '' || type.includes('/') || type.startsWith('.')) {
    throw invalid(`plugin ${position + 1} has no usable "type"`);
  }
  const declared = isObject(document['capabilities']) ? Object.entries(document['capabilities']) : [];
  return { type, capabilities: new Set(declared.filter(([, on]) => on === true).map(([name]) => name)), document };
}
