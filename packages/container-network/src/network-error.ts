import { RuntimeError, type RuntimeErrorCode } from '@keelson/container-runtime';

/** The error that a plugin returned. */
export interface PluginFailure {
  /** Type of the plugin, for example `bridge`. */
  readonly plugin: string;
  readonly command: 'ADD' | 'CHECK' | 'DEL' | 'VERSION';
  /** Error code of the result: below 100 defined by CNI, from 100 on by the plugin; undefined without a result. */
  readonly pluginCode?: number;
  /** Message and details of the result. */
  readonly pluginMessage?: string;
}

/** A sandbox could not be connected or disconnected. A RuntimeError, so that runtimes can throw it unchanged. */
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
