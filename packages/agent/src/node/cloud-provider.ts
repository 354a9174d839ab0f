import { readFile } from 'node:fs/promises';
import { didYouMeanOneOf, UsageError } from '@keelson/core/internal';
import type { Logger } from '@keelson/core/runtime';
import type { CloudConfig, CloudInstance } from '../base/config/agent-config.ts';
import { fileInstance } from './file-cloud-provider.ts';

/** The input of a cloud provider. */
export interface CloudProviderContext {
  readonly nodeName: string;
  /** Contents of `--cloud-config`; undefined without one. */
  readonly config: string | undefined;
  readonly logger: Logger;
}

/** Queries a cloud for this host; called once, before the node registers. An error prevents the start of the agent. */
export type CloudProvider = (context: CloudProviderContext) => Promise<CloudInstance>;

/** Providers by the name of `--cloud-provider`; programs that embed an agent can add their own. */
export type CloudProviders = Readonly<Record<string, CloudProvider>>;

/** Providers that come with the agent. */
const ownProviders: CloudProviders = { file: fileInstance };

/** The value for a cloud that a controller of the cluster queries: the agent only marks the node as uninitialized. */
export const externalCloud = 'external';

export interface CloudQuestion {
  readonly cloud: CloudConfig;
  readonly nodeName: string;
  /** In addition to the providers of the agent. */
  readonly providers?: CloudProviders;
  readonly logger: Logger;
}

/**
 * The data of the selected provider about this host; undefined without a provider.
 *
 * @throws UsageError for an unknown provider, or a configuration that cannot be read
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
    const names = [externalCloud, ...Object.keys(known)].sort();
    const hint = didYouMeanOneOf(cloud.provider, names);
    throw new UsageError(`--cloud-provider: unknown provider ${JSON.stringify(cloud.provider)}${hint}`);
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
