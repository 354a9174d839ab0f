import { execFile } from 'node:child_process';
import type { KubeObject } from '@keelson/core';
import { buildGoTool } from '@keelson/test-support';
import { cleanEnvironment } from './keelson-process.ts';

/**
 * The program of `test/tools/typed-list`: the one named by KEELSON_TEST_TYPED_LIST, or one built from its sources.
 * Undefined without Go; in CI that is an error, because a suite that silently shrinks proves nothing.
 */
export function findTypedList(): string | undefined {
  const found = process.env['KEELSON_TEST_TYPED_LIST'] ?? buildGoTool('typed-list');
  if (found === undefined && process.env['CI'] !== undefined) {
    throw new Error('no typed-list: install Go so that it can be built, or name one in KEELSON_TEST_TYPED_LIST');
  }
  return found;
}

export interface TypedListOptions {
  readonly server: string;
  readonly mediaType: string;
  readonly limit?: number;
  readonly watchFrom?: string;
  readonly until?: string;
}

/** An object of a list, or an event of a watch. */
export interface TypedLine {
  readonly type?: string;
  readonly object: KubeObject;
}

/** What the program printed: a line for each object, and for a list its summary. */
export interface TypedOutput {
  readonly lines: readonly string[];
  readonly summary: { readonly resourceVersion: string; readonly count: number; readonly pages: number } | undefined;
}

export function runTypedList(command: string, options: TypedListOptions): Promise<TypedOutput> {
  const args = ['-server', options.server, '-media-type', options.mediaType];
  if (options.limit !== undefined) args.push('-limit', String(options.limit));
  if (options.watchFrom !== undefined) args.push('-watch-from', options.watchFrom, '-until', options.until ?? '');
  return new Promise((resolve, reject) => {
    const limits = { timeout: 120_000, maxBuffer: 256 * 1024 * 1024 };
    execFile(command, args, { env: cleanEnvironment(), ...limits }, (error, stdout, stderr) => {
      if (error !== null) {
        reject(new Error(`typed-list ${args.join(' ')} failed: ${error.message}\n${stderr}`));
        return;
      }
      const lines = stdout.trimEnd().split('\n');
      const summary = options.watchFrom === undefined ? JSON.parse(lines.pop() ?? '') : undefined;
      resolve({ lines, summary });
    });
  });
}
