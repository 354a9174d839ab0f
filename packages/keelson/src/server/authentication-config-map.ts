import { X509Certificate } from 'node:crypto';
import { missingIsUndefined } from '@keelson/client';
import { type ApiClient, isStatusError, StatusReason } from '@keelson/core';
import { ConfigMap } from '@keelson/kinds';
import { type Credentials, frontProxyName } from '../tls/credentials.ts';

/** The object from which servers of aggregated APIs learn whom this cluster authenticates, and how. */
export const authenticationConfigMap = {
  namespace: 'kube-system',
  name: 'extension-apiserver-authentication',
} as const;

/** The valid certificates of both texts, each once: several servers may have authorities of their own. */
function joined(stored: string | undefined, own: string): string {
  const blocks = `${own}\n${stored ?? ''}`.match(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs) ?? [];
  const valid = blocks.filter((block) => {
    try {
      return Date.parse(new X509Certificate(block).validTo) > Date.now();
    } catch {
      return false;
    }
  });
  return `${[...new Set(valid)].join('\n')}\n`;
}

function merged(stored: Readonly<Record<string, string>>, credentials: Credentials): Record<string, string> {
  const { frontProxy } = credentials;
  return {
    ...stored,
    'client-ca-file': joined(stored['client-ca-file'], credentials.authority),
    ...(frontProxy
      ? {
          'requestheader-client-ca-file': joined(stored['requestheader-client-ca-file'], frontProxy.authority),
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
export async function publishAuthenticationConfig(api: ApiClient, credentials: Credentials): Promise<void> {
  const { namespace, name } = authenticationConfigMap;
  const maps = api.resource(ConfigMap).namespace(namespace);
  for (;;) {
    const stored = await maps.get(name).catch(missingIsUndefined);
    const data = merged(stored?.data ?? {}, credentials);
    if (stored !== undefined && Object.entries(data).every(([key, value]) => stored.data?.[key] === value)) return;
    const head = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name } } as const;
    try {
      if (stored === undefined) await maps.create({ ...head, data });
      else await maps.update({ ...stored, data });
      return;
    } catch (error) {
      // Another server wrote it at the same time.
      if (!isStatusError(error, StatusReason.Conflict) && !isStatusError(error, StatusReason.AlreadyExists))
        throw error;
    }
  }
}
