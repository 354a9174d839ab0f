import { readFile } from 'node:fs/promises';
import type { Logger } from '@keelson/core';
import type { CloudConfig, CloudInstance } from '../base/config/agent-config.ts';
import { UsageError } from '../base/usage-error.ts';
import { fileInstance } from './file-cloud-provider.ts';

/** What a provider gets to work with. */
export interface CloudProviderContext {
  readonly nodeName: string;
  /** Contents of `--cloud-config`; undefined without one. */
  readonly config: string | undefined;
  readonly logger: Logger;
}

/** Asks a cloud about this machine; called once, before the node registers. An error keeps the agent from starting. */
export type CloudProvider = (context: CloudProviderContext) => Promise<CloudInstance>;

/** Providers by the name of `--cloud-provider`; programs that run an agent may bring their own. */
export type CloudProviders = Readonly<Record<string, CloudProvider>>;

/** Providers that come with the agent. */
const ownProviders: CloudProviders = { file: fileInstance };

/** The word for a cloud that somebody else in the cluster asks: the agent only says that the node waits for that. */
export const externalCloud = 'external';

export interface CloudQuestion {
  readonly cloud: CloudConfig;
  readonly nodeName: string;
  /** Besides those that come with the agent. */
  readonly providers?: CloudProviders;
  readonly logger: Logger;
}

/**
 * What the chosen provider says of this machine; undefined without one.
 *
 * @throws UsageError for a provider that nobody knows, or a configuration that cannot be read
 */
export async function askCloud({
  cloud,
  nodeName,
  providers,
  logger,
}: CloudQuestion): Promise<CloudInstance | undefined> {
  if (cloud.provider === '' || cloud.provider === externalCloud) return undefined;
  const known = { ...ownProviders, ...providers };
  const ask = Object.hasOwn(known, cloud.provider) ? known[cloud.provider] : undefined;
  if (ask === undefined) {
    const names = [externalCloud, ...Object.keys(known)].sort().join(', ');
    throw new UsageError(`--cloud-provider: unknown provider ${JSON.stringify(cloud.provider)}; known: ${names}`);
  }
  return ask({ nodeName, config: await configOf(cloud.configPath), logger: logger.child({ component: 'cloud' }) });
}

async function configOf(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new UsageError(`--cloud-config cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}
