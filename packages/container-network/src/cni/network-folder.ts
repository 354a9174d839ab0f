import { readdir, readFile, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { Clock, Logger } from '@keelson/core/runtime';
import { NetworkError } from '../network-error.ts';
import { withinDeadline } from './deadline.ts';
import { type NetworkList, parseNetworkList } from './network-list.ts';
import { findPlugin } from './plugin-files.ts';
import { PluginProcess } from './plugin-process.ts';

export interface NetworkFolderOptions {
  readonly confDir: string;
  readonly binDirs: readonly string[];
  readonly launch?: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The network of a folder of configurations, or the reason why the folder contains no usable one. */
export type FoundNetwork = { readonly list: NetworkList } | { readonly problem: string };

const extensions = new Set(['.conf', '.conflist', '.json']);
const versionTimeoutMs = 10_000;

/**
 * The folder of network configurations. The first valid file by name defines the network. The folder is read again when
 * the folder, its files or the folders of plugins have changed.
 */
export class NetworkFolder {
  readonly #options: NetworkFolderOptions;
  readonly #process: PluginProcess;
  #cached: { readonly fingerprint: string; readonly found: Promise<FoundNetwork> } | undefined;

  constructor(options: NetworkFolderOptions) {
    this.#options = options;
    this.#process = new PluginProcess(options.launch);
  }

  async current(): Promise<FoundNetwork> {
    const { confDir, binDirs } = this.#options;
    let names: string[];
    try {
      names = (await readdir(confDir)).filter((name) => extensions.has(extname(name))).sort();
    } catch (error) {
      return { problem: `network configurations in ${confDir} cannot be read: ${textOf(error)}` };
    }
    const fingerprints = await Promise.all(
      [...binDirs, ...names.map((name) => join(confDir, name))].map(fingerprintOf),
    );
    const fingerprint = JSON.stringify([names, fingerprints]);
    if (this.#cached?.fingerprint !== fingerprint) this.#cached = { fingerprint, found: this.#read(names) };
    return this.#cached.found;
  }

  async #read(names: readonly string[]): Promise<FoundNetwork> {
    const { confDir, logger } = this.#options;
    if (names.length === 0) return { problem: `no network config found in ${confDir}` };
    const problems: string[] = [];
    for (const name of names) {
      try {
        const list = parseNetworkList(await readFile(join(confDir, name), 'utf8'));
        await this.#validate(list);
        logger.info('network selected', { file: join(confDir, name), network: list.name, cniVersion: list.cniVersion });
        return { list };
      } catch (error) {
        logger.warn('invalid network configuration', { file: join(confDir, name), err: error });
        problems.push(`${name}: ${textOf(error)}`);
      }
    }
    return { problem: `no valid network config found in ${confDir}: ${problems.join('; ')}` };
  }

  /** Checks that the plugins of a network are installed and support its version. */
  async #validate(list: NetworkList): Promise<void> {
    const { clock, binDirs } = this.#options;
    for (const { type } of list.plugins) {
      const path = await findPlugin(type, binDirs);
      const answer = await withinDeadline(clock, `plugin ${type} (VERSION)`, versionTimeoutMs, {}, (signal) =>
        this.#process.call({
          plugin: type,
          path,
          command: 'VERSION',
          variables: {},
          input: { cniVersion: list.cniVersion },
          signal,
        }),
      );
      const supported = answer?.['supportedVersions'];
      const versions: unknown[] = Array.isArray(supported) ? supported : ['0.1.0'];
      if (!versions.includes(list.cniVersion)) {
        throw new NetworkError(
          'InvalidArgument',
          `plugin ${type} does not support CNI ${list.cniVersion}, only ${versions.join(', ')}`,
        );
      }
    }
  }
}

/** A text that changes when the file is replaced or modified. */
async function fingerprintOf(path: string): Promise<string> {
  try {
    const { ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [ino, size, mtimeNs, ctimeNs].join(' ');
  } catch (error) {
    return textOf(error);
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
