import { RuntimeError, type RuntimeErrorCode } from '@keelson/container-runtime';

/** What a plugin said when it failed. */
export interface PluginFailure {
  /** Its type, as `bridge`. */
  readonly plugin: string;
  readonly command: 'ADD' | 'CHECK' | 'DEL' | 'VERSION';
  /**
   * The code of its own answer: below 100 as CNI defines them, from 100 on the plugin's; undefined when it gave no
   * answer.
   */
  readonly pluginCode?: number;
  /** Message and details of its own answer. */
  readonly pluginMessage?: string;
}

/** A network that was not made, or not taken back. A runtime error, so that runtimes can pass it on as it is. */
export class NetworkError extends RuntimeError {
  /** Present when a plugin failed. */
  readonly failure: PluginFailure | undefined;

  constructor(
    code: RuntimeErrorCode,
    message: string,
    details: { readonly cause?: unknown; readonly failure?: PluginFailure } = {},
  ) {
    super(code, message, details);
    this.name = 'NetworkError';
    this.failure = details.failure;
  }
}
