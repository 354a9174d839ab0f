import { isIP } from '@keelson/core';
import { isJsonObject, parseConfigDocument, rejectUnknownKeys, UsageError } from '@keelson/core/internal';
import type { CloudInstance } from '../base/config/agent-config.ts';
import type { CloudProviderContext } from './cloud-provider.ts';

const texts = ['providerID', 'instanceType', 'zone', 'region'] as const;
const addressTypes = ['InternalIP', 'ExternalIP', 'Hostname', 'InternalDNS', 'ExternalDNS'];

const wrong = (problem: string) => new UsageError(`--cloud-config: ${problem}`);

/**
 * The provider `file`: reads the data of the host from the file of `--cloud-config` in YAML or JSON: `providerID`,
 * `instanceType`, `zone`, `region`, and `addresses` in the form of the node status.
 *
 * @throws UsageError
 */
export async function fileInstance({ config }: Pick<CloudProviderContext, 'config'>): Promise<CloudInstance> {
  if (config === undefined) throw new UsageError('--cloud-provider=file needs --cloud-config');
  const document = parseConfigDocument(Buffer.from(config), '--cloud-config');
  rejectUnknownKeys(document, [...texts, 'addresses'], '--cloud-config');
  const found: Record<string, string> = {};
  for (const key of texts) {
    const value = document[key];
    if (value === undefined) continue;
    if (typeof value !== 'string' || value === '') throw wrong(`${key} must be a string`);
    found[key] = value;
  }
  const { providerID, ...rest } = found;
  return {
    ...(providerID !== undefined && { providerId: providerID }),
    ...rest,
    ...(document['addresses'] !== undefined && { addresses: addressesOf(document['addresses']) }),
  };
}

function addressesOf(value: unknown): NonNullable<CloudInstance['addresses']> {
  if (!Array.isArray(value)) throw wrong('addresses must be a list');
  return value.map((entry: unknown) => {
    const { type, address } = isJsonObject(entry) ? entry : {};
    if (typeof type !== 'string' || !addressTypes.includes(type))
      throw wrong(`type of an address must be one of ${addressTypes.join(', ')}`);
    if (typeof address !== 'string' || address === '') throw wrong('an address must be a string');
    if (type.endsWith('IP') && !isIP(address)) throw wrong(`${JSON.stringify(address)} is not a valid IP address`);
    return { type, address };
  });
}
