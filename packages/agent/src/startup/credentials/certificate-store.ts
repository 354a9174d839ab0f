import { readFile, rename, rm, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { agentName } from '../../base/agent-name.ts';
import { replaceFile } from '../../base/replace-file.ts';
import { type ClientCertificate, clientCertificate } from './client-certificate.ts';

/** `2026-01-02-12-00-00`. */
function fileTime(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(0, 19).replace(/[T:]/g, '-');
}

/**
 * The client certificates of --cert-dir: each in a file of its own together with its key, readable by the owner only,
 * and a link that names the one in use.
 */
export class CertificateStore {
  readonly #directory: string;
  /** The certificate in use, whichever that is. */
  readonly currentPath: string;

  constructor(directory: string) {
    this.#directory = directory;
    this.currentPath = join(directory, `${agentName}-client-current.pem`);
  }

  /** The certificate in use; undefined when there is none that can be used. */
  async current(): Promise<ClientCertificate | undefined> {
    try {
      const text = await readFile(this.currentPath, 'utf8');
      return clientCertificate(text, text);
    } catch {
      return undefined;
    }
  }

  /**
   * Keeps a certificate, and from then on it is the one in use. The link is exchanged as a whole: a crash leaves the
   * old one or the new one.
   */
  async keep({ certificate, key }: ClientCertificate, nowMs: number): Promise<void> {
    const path = join(this.#directory, `${agentName}-client-${fileTime(nowMs)}.pem`);
    await replaceFile(path, `${certificate.trimEnd()}\n${key.trimEnd()}\n`);
    const beside = `${this.currentPath}.new`;
    await rm(beside, { force: true });
    await symlink(basename(path), beside);
    await rename(beside, this.currentPath);
  }
}
