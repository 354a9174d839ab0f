import { readFile, rename, rm, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { replaceFile } from '@keelson/container-host';
import { agentName } from '../../base/agent-name.ts';
import { type ClientCertificate, clientCertificate } from './client-certificate.ts';

/** Formats a time for file names: `2026-01-02-12-00-00`. */
function fileTime(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(0, 19).replace(/[T:]/g, '-');
}

/**
 * The client certificates in --cert-dir. Each is in one file together with its key, readable by the owner only; a
 * symbolic link refers to the current one.
 */
export class CertificateStore {
  readonly #directory: string;
  /** The path of the symbolic link to the current certificate. */
  readonly currentPath: string;

  constructor(directory: string) {
    this.#directory = directory;
    this.currentPath = join(directory, `${agentName}-client-current.pem`);
  }

  /** Reads the current certificate; returns undefined when there is none or it cannot be used. */
  async current(): Promise<ClientCertificate | undefined> {
    try {
      const text = await readFile(this.currentPath, 'utf8');
      return clientCertificate(text, text);
    } catch {
      return undefined;
    }
  }

  /**
   * Saves a certificate and makes it the current one. The symbolic link is replaced atomically, so that after a crash
   * it refers to the previous or to the new certificate.
   */
  async keep({ certificate, key }: ClientCertificate, nowMs: number): Promise<void> {
    const path = join(this.#directory, `${agentName}-client-${fileTime(nowMs)}.pem`);
    await replaceFile(path, `${certificate.trimEnd()}\n${key.trimEnd()}\n`);
    const newLink = `${this.currentPath}.new`;
    await rm(newLink, { force: true });
    await symlink(basename(path), newLink);
    await rename(newLink, this.currentPath);
  }
}
