import { mkdir, readFile, stat } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { createSelfSigned, MachineError, type ServingPair } from '@keelson/agent';
import { replaceFile } from '@keelson/container-host';
import type { SupervisorPlace } from './supervisor-place.ts';

/** Common name of the certificates. It identifies the supervisor of another agent in messages and proves nothing. */
export const supervisorName = 'keelson-agent supervisor';

/** The pair is valid as long as its file exists: both ends pin the certificate. */
const validity = { notBefore: new Date('2000-01-01T00:00:00Z'), notAfter: new Date('9999-12-31T23:59:59Z') };

const certificateBegin = '-----BEGIN CERTIFICATE-----';

/**
 * The key and certificate by which the agent and its supervisor authenticate each other; created once.
 *
 * @throws MachineError for a file that others can read or write
 */
export async function supervisorPair(place: SupervisorPlace): Promise<ServingPair> {
  const found = await readPair(place);
  if (found !== undefined) return found;
  await mkdir(place.folder, { recursive: true, mode: 0o700 });
  // Not injected: the other process checks the validity with the clock of the machine.
  const made = await createSelfSigned([supervisorName, '127.0.0.1', '::1', 'localhost'], Date.now(), validity);
  // One file, so that there is never a key without its certificate.
  await replaceFile(place.pair, `${made.key.trimEnd()}\n${made.certificate.trimEnd()}\n`);
  return made;
}

/**
 * Reads the pair; undefined when there is none.
 *
 * @throws MachineError for a file that others can read or write, or that does not contain a pair
 */
export async function readPair({ pair: path }: SupervisorPlace): Promise<ServingPair | undefined> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const { mode, uid } = await stat(path);
  if ((mode & 0o077) !== 0 || uid !== process.getuid?.())
    throw new MachineError(
      `${path} must be readable by its owner only; remove it if others may have read it, and a new one is created`,
    );
  const begin = text.indexOf(certificateBegin);
  const pair = { key: text.slice(0, begin), certificate: text.slice(begin) };
  try {
    createSecureContext({ key: pair.key, cert: pair.certificate });
  } catch (error) {
    throw new MachineError(
      `${path} does not contain a matching key and certificate; remove it, and a new pair is created: ` +
        (error as Error).message,
    );
  }
  return pair;
}
