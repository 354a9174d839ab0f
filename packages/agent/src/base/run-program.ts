import { spawn } from 'node:child_process';

/** A program could not be run, ended with another code than 0, or took too long. */
export class ProgramError extends Error {
  /** Undefined when it did not end by itself. */
  readonly exitCode: number | undefined;
  readonly stdout: string;

  constructor(message: string, exitCode: number | undefined, stdout: string) {
    super(message);
    this.name = 'ProgramError';
    this.exitCode = exitCode;
    this.stdout = stdout;
  }
}

/** Runs a program to its end. Returns what it wrote to its standard output. @throws ProgramError */
export type RunProgram = (program: string, words: readonly string[], input?: Buffer) => Promise<Buffer>;

const timeoutMs = 120_000;
const maxText = 2_000;

/** Runs programs of this machine; one that takes longer than two minutes is killed. */
export const runProgram: RunProgram = (program, words, input) =>
  new Promise((resolve, reject) => {
    const child = spawn(program, words, { stdio: ['pipe', 'pipe', 'pipe'] });
    // Not spawn's own timeout: that one goes on when there is no such program, and holds this process for its length.
    const deadline = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
    const stdout: Buffer[] = [];
    let stderr = '';
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => {
      if (stderr.length < maxText) stderr += String(chunk);
    });
    child.once('error', (error) => {
      clearTimeout(deadline);
      reject(new ProgramError(`${program}: ${error.message}`, undefined, ''));
    });
    child.once('close', (code, signal) => {
      clearTimeout(deadline);
      const output = Buffer.concat(stdout);
      if (code === 0) return resolve(output);
      const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
      const text = stderr.trim().slice(0, maxText);
      reject(new ProgramError(`${program}: ${text === '' ? how : text}`, code ?? undefined, output.toString('utf8')));
    });
    // A program that does not read its input is no failure.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  });
