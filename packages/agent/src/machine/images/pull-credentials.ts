import type { ImageAuth } from '@keelson/container-runtime';
import type { Secret } from '@keelson/kinds';
import { isRecord } from '../../base/is-record.ts';
import { registryMatch } from './registry-match.ts';

/**
 * Credentials in the pull secrets for the repository of a reference: in the order of the secrets, and in each of them
 * those that name it most closely first. What cannot be read is passed over.
 */
export function pullCredentials(reference: string, secrets: readonly Secret[]): ImageAuth[] {
  return secrets.flatMap((secret) =>
    Object.entries(registriesOf(secret))
      .map(([server, entry]) => ({ server, entry, closeness: registryMatch(server, reference) }))
      .filter(({ closeness }) => closeness !== undefined)
      .sort((a, b) => (b.closeness ?? 0) - (a.closeness ?? 0))
      .flatMap(({ server, entry }) => authOf(server, entry)),
  );
}

function registriesOf(secret: Secret): Record<string, unknown> {
  const data: Record<string, string> = secret.data ?? {};
  const modern = readJson(data['.dockerconfigjson']);
  if (isRecord(modern['auths'])) return modern['auths'];
  return readJson(data['.dockercfg']);
}

function readJson(base64: string | undefined): Record<string, unknown> {
  if (base64 === undefined) return {};
  try {
    const value: unknown = JSON.parse(Buffer.from(base64, 'base64').toString('utf8'));
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

function authOf(server: string, entry: unknown): ImageAuth[] {
  if (!isRecord(entry)) return [];
  const text = (key: string) => (typeof entry[key] === 'string' ? (entry[key] as string) : undefined);
  const pair = Buffer.from(text('auth') ?? '', 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  const username = text('username') ?? (colon > 0 ? pair.slice(0, colon) : undefined);
  const password = text('password') ?? (colon > 0 ? pair.slice(colon + 1) : undefined);
  const identityToken = text('identitytoken');
  const registryToken = text('registrytoken');
  if (username === undefined && identityToken === undefined && registryToken === undefined) return [];
  return [
    {
      serverAddress: server,
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
      ...(identityToken === undefined ? {} : { identityToken }),
      ...(registryToken === undefined ? {} : { registryToken }),
    },
  ];
}
