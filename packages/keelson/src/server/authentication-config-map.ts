import { X509Certificate } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { AuthenticationOptions } from '@keelson/access';
import { createHttpClient, kubeconfigAccess, loadKubeconfig, missingIsUndefined } from '@keelson/client';
import { type ApiClient, isStatusError, StatusReason } from '@keelson/core';
import { UsageError } from '@keelson/core/internal';
import type { Clock, Logger } from '@keelson/core/runtime';
import { ConfigMap } from '@keelson/kinds';
import { writePrivateFile } from '../base/private-file.ts';
import { type Credentials, frontProxyName } from '../tls/credentials.ts';

/** The object from which servers of aggregated APIs learn whom this cluster authenticates, and how. */
const authenticationConfigMap = {
  namespace: 'kube-system',
  name: 'extension-apiserver-authentication',
} as const;

/** The valid certificates of both texts, each once: several servers may have authorities of their own. */
function joined(stored: string | undefined, own: string, now: number): string {
  const blocks = `${own}\n${stored ?? ''}`.match(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs) ?? [];
  const valid = blocks.filter((block) => {
    try {
      return Date.parse(new X509Certificate(block).validTo) > now;
    } catch {
      return false;
    }
  });
  return `${[...new Set(valid)].join('\n')}\n`;
}

function merged(
  stored: Readonly<Record<string, string>>,
  credentials: Credentials,
  now: number,
): Record<string, string> {
  const { frontProxy } = credentials;
  return {
    ...stored,
    'client-ca-file': joined(stored['client-ca-file'], credentials.authority, now),
    ...(frontProxy
      ? {
          'requestheader-client-ca-file': joined(stored['requestheader-client-ca-file'], frontProxy.authority, now),
          'requestheader-allowed-names': JSON.stringify([frontProxyName]),
          'requestheader-username-headers': '["X-Remote-User"]',
          'requestheader-uid-headers': '["X-Remote-Uid"]',
          'requestheader-group-headers': '["X-Remote-Group"]',
          'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
        }
      : {}),
  };
}

/** Publishes the authorities of users and front proxies, as kube-apiserver does. */
export async function publishAuthenticationConfig(
  api: ApiClient,
  credentials: Credentials,
  clock: Clock,
): Promise<void> {
  const { namespace, name } = authenticationConfigMap;
  const maps = api.resource(ConfigMap).namespace(namespace);
  for (;;) {
    const stored = await maps.get(name).catch(missingIsUndefined);
    const data = merged(stored?.data ?? {}, credentials, clock.now());
    if (stored !== undefined && Object.entries(data).every(([key, value]) => stored.data?.[key] === value)) return;
    const head = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name } } as const;
    try {
      if (stored === undefined) await maps.create({ ...head, data });
      else await maps.update({ ...stored, data });
      return;
    } catch (error) {
      // Another server wrote the ConfigMap at the same time.
      if (!isStatusError(error, StatusReason.Conflict) && !isStatusError(error, StatusReason.AlreadyExists))
        throw error;
    }
  }
}

/** Interval at which the certificate authorities of the cluster that this server extends are read again. */
const refreshMs = 60_000;

/** How the cluster that this server extends authenticates users. */
export interface DelegatedAuthentication {
  readonly options: Pick<AuthenticationOptions, 'requestHeaders' | 'clientAuthorityFile'>;
  stop(): void;
}

export interface DelegationOptions {
  /** Kubeconfig of the extended cluster. */
  readonly kubeconfig: string;
  /** Directory in which its authorities are stored, so that a change of them is noticed as of any file. */
  readonly directory: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

function names(data: Readonly<Record<string, string>>, key: string): string[] {
  const value: unknown = JSON.parse(data[key] ?? '[]');
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value as string[];
  throw new Error(`${key} is not a list of texts`);
}

/**
 * Reads from the extended cluster how its front proxy and its users are recognised. The authorities are read again
 * every minute.
 *
 * @throws UsageError when the cluster cannot be asked at the start
 */
export async function delegatedAuthentication(delegation: DelegationOptions): Promise<DelegatedAuthentication> {
  const { kubeconfig, directory, clock, logger } = delegation;
  const option = `--authentication-kubeconfig ${kubeconfig}`;
  const { namespace, name } = authenticationConfigMap;
  const failed = (error: Error) => {
    throw new UsageError(`${option}: ${error.message}`);
  };
  const config = await loadKubeconfig({ path: kubeconfig }).catch(failed);
  const { options } = await kubeconfigAccess(config, { clock }).catch(failed);
  const client = createHttpClient({ ...options, clock });
  const proxyFile = join(directory, 'requestheader-client-ca.crt');
  const clientFile = join(directory, 'client-ca.crt');
  const read = async (): Promise<Record<string, string>> => {
    const { data = {} } = await client.resource(ConfigMap).namespace(namespace).get(name);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    for (const [file, key] of [
      [proxyFile, 'requestheader-client-ca-file'],
      [clientFile, 'client-ca-file'],
    ] as const) {
      if (data[key]) await writePrivateFile(file, data[key]);
    }
    return data;
  };
  const data = await read().catch((error: Error) =>
    failed(new Error(`the ConfigMap ${namespace}/${name} of the cluster cannot be used: ${error.message}`)),
  );
  let stopped = false;
  let cancel = () => {};
  const schedule = () => {
    if (stopped) return;
    cancel = clock.after(refreshMs, () => {
      void read()
        .catch((err: unknown) => logger.warn('the authorities of the extended cluster were not read', { err }))
        .then(schedule);
    });
  };
  schedule();
  return {
    options: {
      ...(data['client-ca-file'] ? { clientAuthorityFile: clientFile } : {}),
      ...(data['requestheader-client-ca-file']
        ? {
            requestHeaders: {
              authorityFile: proxyFile,
              allowedNames: names(data, 'requestheader-allowed-names'),
              username: names(data, 'requestheader-username-headers'),
              uid: names(data, 'requestheader-uid-headers'),
              groups: names(data, 'requestheader-group-headers'),
              extraPrefixes: names(data, 'requestheader-extra-headers-prefix'),
            },
          }
        : {}),
    },
    stop: () => {
      stopped = true;
      cancel();
      client.close();
    },
  };
}
