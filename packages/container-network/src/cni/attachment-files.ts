import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readIfPresent, replaceFile } from '@keelson/container-host';
import { isJsonObject } from '@keelson/core/internal';
import type { Logger } from '@keelson/core/runtime';
import { NetworkError } from '../network-error.ts';
import { type JsonObject, type NetworkList, networkListOf } from './network-list.ts';

/** Record of the connection of a sandbox. Contains everything that is required to disconnect the sandbox. */
export interface Attachment {
  readonly sandboxId: string;
  readonly netnsPath: string;
  /** Identity of the network namespace at `netnsPath` when the sandbox was connected. */
  readonly netnsId?: string;
  readonly ifName: string;
  readonly args: string;
  readonly capabilityArgs: JsonObject;
  readonly list: NetworkList;
  /** Result of the last plugin; absent until all plugins have succeeded. */
  readonly result?: JsonObject;
}

const suffix = '.json';

/**
 * One file for each sandbox that is connected, or was being connected. The files survive a crash of the agent, so that
 * incomplete connections can be removed.
 */
export class AttachmentFiles {
  readonly #folder: string;
  readonly #logger: Logger;

  constructor(folder: string, logger: Logger) {
    this.#folder = folder;
    this.#logger = logger;
  }

  async all(): Promise<string[]> {
    const names = await readdir(this.#folder).catch(absent([]));
    return names.filter((name) => name.endsWith(suffix)).map((name) => name.slice(0, -suffix.length));
  }

  /** The record of a sandbox; undefined without one. An invalid file is logged and ignored. */
  async read(sandboxId: string): Promise<Attachment | undefined> {
    const text = await readIfPresent(this.#path(sandboxId));
    if (text === undefined) return undefined;
    try {
      return parse(text, sandboxId);
    } catch (err) {
      this.#logger.warn('invalid record of a sandbox network', { sandboxId, err });
      return undefined;
    }
  }

  async write({ list, ...rest }: Attachment): Promise<void> {
    await replaceFile(this.#path(rest.sandboxId), JSON.stringify({ ...rest, list: list.document }));
  }

  async delete(sandboxId: string): Promise<void> {
    await rm(this.#path(sandboxId), { force: true });
  }

  /** Path of the record. Ids that CNI accepts are valid file names. */
  #path(sandboxId: string): string {
    if (!/^[A-Za-z0-9][\w.-]*$/.test(sandboxId)) {
      throw new NetworkError('InvalidArgument', `${JSON.stringify(sandboxId)} is not a valid CNI container id`);
    }
    return join(this.#folder, `${sandboxId}${suffix}`);
  }
}

function absent<T>(value: T): (error: NodeJS.ErrnoException) => T {
  return (error) => {
    if (error.code === 'ENOENT') return value;
    throw error;
  };
}

function parse(text: string, sandboxId: string): Attachment {
  const value: unknown = JSON.parse(text);
  if (!isJsonObject(value) || !isJsonObject(value['list']))
    throw new NetworkError('Internal', 'the file is not a record of a sandbox network');
  const { netnsPath, netnsId, ifName, args, capabilityArgs, result } = value;
  return {
    sandboxId,
    netnsPath: typeof netnsPath === 'string' ? netnsPath : '',
    ifName: typeof ifName === 'string' ? ifName : 'eth0',
    args: typeof args === 'string' ? args : '',
    capabilityArgs: isJsonObject(capabilityArgs) ? capabilityArgs : {},
    list: networkListOf(value['list']),
    ...(typeof netnsId === 'string' && { netnsId }),
    ...(isJsonObject(result) && { result }),
  };
}
