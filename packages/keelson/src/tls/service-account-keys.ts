import { generateKeyPairSync } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readSigningKey, readVerificationKeys, type ServiceAccountOptions } from '@keelson/access';
import { UsageError } from '@keelson/core/internal';
import type { Logger } from '@keelson/core/runtime';
import { readPrivateFile, writePrivateFile } from '../base/private-file.ts';
import type { ServerOptions } from '../config/options.ts';

/** File name of the generated signing key in the data directory. */
export const serviceAccountKeyFile = 'service-account.key';

/**
 * Reads the keys of the options; creates the signing key of the data directory when it does not exist.
 *
 * @throws UsageError
 */
export async function loadServiceAccounts(options: ServerOptions, logger: Logger): Promise<ServiceAccountOptions> {
  const {
    serviceAccountSigningKeyFile: file,
    serviceAccountIssuers: issuers,
    serviceAccountJwksUri: jwksUri,
    apiAudiences: audiences,
    serviceAccountMaxTokenExpiration: maxMs,
  } = options;
  const signingKey =
    file === undefined
      ? await generatedKey(options.data, logger)
      : await readKey(`--service-account-signing-key-file ${file}`, readPrivateFile(file, logger), readSigningKey);
  const verificationKeys = options.serviceAccountKeyFiles.map((path) =>
    readKey(`--service-account-key-file ${path}`, readFile(path, 'utf8'), readVerificationKeys),
  );
  return {
    signingKey,
    verificationKeys: await Promise.all(verificationKeys),
    ...(issuers.length > 0 ? { issuers } : {}),
    ...(audiences.length > 0 ? { audiences } : {}),
    ...(jwksUri === undefined ? {} : { jwksUri }),
    ...(maxMs === undefined ? {} : { maxExpirationSeconds: Math.floor(maxMs / 1000) }),
    extendExpiration: options.serviceAccountExtendTokenExpiration,
  };
}

async function generatedKey(data: string, logger: Logger): Promise<string> {
  const path = join(data, serviceAccountKeyFile);
  const existing = await readPrivateFile(path, logger);
  if (existing !== undefined) {
    readSigningKey(existing, path);
    return existing;
  }
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const created = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
  await writePrivateFile(path, created, logger);
  return created;
}

/** @param check throws a UsageError for a text without a usable key */
async function readKey(
  source: string,
  reading: Promise<string | undefined>,
  check: (pem: string, source: string) => unknown,
): Promise<string> {
  let pem: string | undefined;
  try {
    pem = await reading;
  } catch (error) {
    throw new UsageError(`${source} cannot be read: ${(error as Error).message}`);
  }
  if (pem === undefined) throw new UsageError(`${source} does not exist`);
  check(pem, source);
  return pem;
}
