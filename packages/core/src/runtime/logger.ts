/** Fields of a log line; `component` names the subsystem. Values of Secrets never belong here. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Messages are constant phrases; variable parts are fields. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  child(fields: LogFields): Logger;
}

/** A logger that drops every line. */
export const silentLogger: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => silentLogger,
};
