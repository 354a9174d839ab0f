import type { ImageAuth } from '@keelson/container-runtime';
import type { Secret } from '@keelson/kinds';
import { isRecord } from '../is-record.ts';

/** Credentials in the pull secrets for the registry of a reference, in the order of the secrets; what cannot be read is passed over. */
export function pullCredentials(reference: string, secrets: readonly Secret[]): ImageAuth[] {
  const registry = registryOf(reference);
  return secrets.flatMap((secret) =>
    Object.entries(registriesOf(secret))
      .filter(([server]) => hostOf(server) === registry)
      .flatMap(([server, entry]) => authOf(server, entry)),
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

/** The registry's host: the first part of a reference, if it looks like a host; else the public one. */
function registryOf(reference: string): string {
  const [first = '', ...rest] = reference.split('/');
  const named = rest.length > 0 && (first.includes('.') || first.includes(':') || first === 'localhost');
  return named ? first : 'docker.io';
}

function hostOf(server: string): string {
  const host = server.replace(/^https?:\/\//, '').split('/')[0] ?? '';
  return host === 'index.docker.io' ? 'docker.io' : host;
}
