import { NetworkError, type PluginFailure } from '../network-error.ts';
import { atLeast, type JsonObject, type NetworkList, type PluginConfig } from './network-list.ts';
import { findPlugin } from './plugin-files.ts';
import type { PluginProcess } from './plugin-process.ts';

/** Parameters with which the plugins of a network are called for one sandbox. */
export interface Calls {
  readonly process: PluginProcess;
  readonly binDirs: readonly string[];
  readonly sandboxId: string;
  /** Path of the sandbox's network namespace; empty when the namespace no longer exists. */
  readonly netnsPath: string;
  readonly ifName: string;
  /** Value of the environment variable CNI_ARGS. */
  readonly args: string;
  readonly capabilityArgs: JsonObject;
  readonly signal: AbortSignal;
  /** Runs functions with the same key one after the other. */
  readonly turns: { run<T>(key: string, work: () => Promise<T>): Promise<T> };
}

/**
 * The plugin that creates chains shared by all pods. It tests for a chain and then creates it, so that of two
 * concurrent calls one fails with "File exists".
 */
const sharingPlugin = 'portmap';

/** Calls each plugin in order with the result of the previous one. Returns the result of the last one. */
export async function addNetwork(list: NetworkList, calls: Calls): Promise<JsonObject> {
  let result: JsonObject | undefined;
  for (const plugin of list.plugins) {
    const before = result;
    const add = () => call(list, plugin, 'ADD', calls, before);
    result = plugin.type === sharingPlugin ? await calls.turns.run(sharingPlugin, add) : await add();
    if (result === undefined) {
      const failure = { plugin: plugin.type, command: 'ADD' } as const;
      throw new NetworkError('Internal', `plugin ${plugin.type} returned no result (ADD)`, { failure });
    }
  }
  return result ?? {};
}

/** Calls CHECK of each plugin in order. Networks of versions without CHECK, or with `disableCheck`, pass. */
export async function checkNetwork(list: NetworkList, calls: Calls, result: JsonObject | undefined): Promise<void> {
  if (list.disableCheck || !atLeast(list.cniVersion, '0.4.0')) return;
  for (const plugin of list.plugins) await call(list, plugin, 'CHECK', calls, result);
}

/** Calls DEL of each plugin in reverse order. A plugin without state for the sandbox succeeds. */
export async function deleteNetwork(list: NetworkList, calls: Calls, result: JsonObject | undefined): Promise<void> {
  const known = atLeast(list.cniVersion, '0.4.0') ? result : undefined;
  for (const plugin of list.plugins.toReversed()) {
    try {
      await call(list, plugin, 'DEL', calls, known);
    } catch (error) {
      if (!(error instanceof NetworkError && error.failure?.pluginCode === unknownContainer)) throw error;
    }
  }
}

const unknownContainer = 3;

async function call(
  list: NetworkList,
  plugin: PluginConfig,
  command: PluginFailure['command'],
  calls: Calls,
  prevResult: JsonObject | undefined,
): Promise<JsonObject | undefined> {
  const { process, binDirs, sandboxId, netnsPath, ifName, args, signal } = calls;
  return process.call({
    plugin: plugin.type,
    path: await findPlugin(plugin.type, binDirs),
    command,
    variables: {
      CNI_CONTAINERID: sandboxId,
      CNI_NETNS: netnsPath,
      CNI_IFNAME: ifName,
      CNI_ARGS: args,
      CNI_PATH: binDirs.join(':'),
    },
    input: pluginInput(list, plugin, calls.capabilityArgs, prevResult),
    signal,
  });
}

/** The input of a plugin: its part of the configuration, and the arguments of its capabilities. */
function pluginInput(
  { name, cniVersion }: NetworkList,
  { document, capabilities }: PluginConfig,
  args: JsonObject,
  prevResult: JsonObject | undefined,
): JsonObject {
  const { capabilities: _, ...config } = document;
  const declared = Object.entries(args).filter(([capability]) => capabilities.has(capability));
  return {
    ...config,
    name,
    cniVersion,
    ...(declared.length > 0 && { runtimeConfig: Object.fromEntries(declared) }),
    ...(prevResult && { prevResult }),
  };
}
