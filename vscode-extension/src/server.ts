/**
 * The server's life: find it, start it, restart it, say once when it is missing.
 *
 * One `LanguageClient` at a time; a restart makes a new one, so that it may be another program.
 */
import * as vscode from "vscode";
import {
  type ConfigurationParams,
  DidChangeConfigurationNotification,
  LanguageClient,
  type LanguageClientOptions,
  type ServerOptions,
  State,
  TransportKind,
} from "vscode-languageclient/node";
import { type Manifest, settingsFor } from "./configuration";
import { locateServer, type ServerCommand } from "./locate";
import { thisMachine } from "./machine";
import type { ManagedServer } from "./managed";
import type { Picture } from "./page";
import type { PictureView } from "./picture";
import { CancellableProgress } from "./progress";
import type { OutputTerminal, ProgramOutput } from "./runs";
import type { Status } from "./status";
import type { FileStatus } from "./verdict";

const SCHEMES = ["file", "untitled", "vscode-vfs", "vsls"];
const PICTURES = ["cuda-lsp.showBanks", "cuda-lsp.showIntervals"];
export const LANGUAGES = ["cuda-cpp", "cuda"];

/** A failed first start only goes to its log: `startClient` shows it, once and with the next step. */
class QuietClient extends LanguageClient {
  quiet = true;

  override error(message: string, data?: unknown, showNotification: boolean | "force" = true): void {
    super.error(message, data, this.quiet ? false : showNotification);
  }
}

export class Server implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private readonly progress = new CancellableProgress(() => this.client);
  private wanted = false;
  private changing: Promise<void> = Promise.resolve();
  private restarting: Promise<void> | undefined;

  constructor(
    private readonly safeFolder: vscode.Uri,
    private readonly log: vscode.LogOutputChannel,
    private readonly status: Status,
    private readonly views: { readonly picture: PictureView; readonly output: OutputTerminal },
    private readonly manifest: Manifest,
    private readonly managed: ManagedServer,
  ) {}

  /** Whether it was started, or somebody tried to. */
  get isWanted(): boolean {
    return this.wanted;
  }

  /** Starts it, if nobody has yet. */
  async started(): Promise<void> {
    await (this.wanted ? this.changing : this.restart());
  }

  /** Starts or restarts. Two quick calls (trust granted, and a setting with it) restart once. */
  restart(): Promise<void> {
    this.wanted = true;
    this.restarting ??= this.change(async () => {
      this.restarting = undefined;
      await this.stopClient();
      await this.startClient();
    });
    return this.restarting;
  }

  /** Makes the environment of our own (from a folder of wheels that is asked for), and starts what is in it. */
  async install(fromFolder: boolean): Promise<void> {
    const made = fromFolder ? await this.managed.installFromFolder() : await this.managed.install();
    if (made) {
      await this.restart();
    }
  }

  private async update(): Promise<void> {
    if (await this.managed.offerUpdate()) {
      await this.restart();
    }
  }

  /** Tells the server what is set now. A server that asks for settings by folder is told to ask again. */
  async settingsChanged(): Promise<void> {
    if (this.client?.state === State.Running) {
      const settings = { "cuda-lsp": settingsFor(this.manifest, undefined) };
      await this.client.sendNotification(DidChangeConfigurationNotification.type, { settings });
    }
  }

  stop(): Promise<void> {
    return this.change(() => this.stopClient());
  }

  private change(action: () => Promise<void>): Promise<void> {
    this.changing = this.changing.then(action).catch((error: unknown) => {
      this.status.serverIs("stopped");
      this.log.error(String(error));
    });
    return this.changing;
  }

  private async startClient(): Promise<void> {
    this.status.serverIs("starting");
    await vscode.workspace.fs.createDirectory(this.safeFolder);
    const command = await locateServer(thisMachine(this.safeFolder.fsPath, this.managed.environment?.python));
    if (command === undefined) {
      this.status.serverIs("missing");
      void askToInstall(this.log);
      return;
    }
    if (command.origin === "managed") {
      void this.update();
    }
    this.log.info(`Starting ${[command.program, ...command.args].join(" ")} (found by ${command.origin}; ${vscode.workspace.isTrusted ? "trusted" : "restricted"} workspace)`);
    const client = this.makeClient(command);
    this.client = client;
    try {
      await client.start();
      client.quiet = false;
    } catch (error) {
      this.status.serverIs("stopped");
      this.log.error(String(error));
      void reportFailedStart(command, this.log);
    }
  }

  private makeClient(command: ServerCommand): QuietClient {
    const server: ServerOptions = {
      command: command.program,
      args: [...command.args],
      transport: TransportKind.stdio,
      options: { cwd: this.safeFolder.fsPath },
    };
    const options: LanguageClientOptions = {
      documentSelector: SCHEMES.flatMap((scheme) => LANGUAGES.map((language) => ({ scheme, language }))),
      outputChannel: this.log,
      initializationOptions: {
        trusted: vscode.workspace.isTrusted,
        messageActions: true,
        asksLaunch: true,
        pictures: true,
        settings: settingsFor(this.manifest, undefined),
      },
      // Hovers quote the workspace's code: what it could write into them are links that draw pictures.
      markdown: { isTrusted: { enabledCommands: PICTURES }, supportHtml: false },
      middleware: {
        handleWorkDoneProgress: (token, params, next) => {
          this.progress.handle(token, params, next);
        },
        workspace: {
          configuration: ({ items }: ConfigurationParams) =>
            items.map(({ section, scopeUri }) =>
              section === "cuda-lsp"
                ? settingsFor(this.manifest, scopeUri === undefined ? undefined : vscode.Uri.parse(scopeUri))
                : null,
            ),
        },
      },
      initializationFailedHandler: () => false, // start() rejects, and the failure is reported there, once
    };
    const client = new QuietClient("cuda-lsp", "cuda-lsp", server, options);
    client.onDidChangeState(({ newState }) => {
      this.clientIs(client, newState);
    });
    client.onNotification("cuda-lsp/fileStatus", (status: FileStatus) => {
      this.status.fileIs(status);
    });
    client.onNotification("cuda-lsp/picture", (picture: Picture) => {
      this.views.picture.show(picture);
    });
    client.onNotification("cuda-lsp/programOutput", (output: ProgramOutput) => {
      this.views.output.write(output);
    });
    return client;
  }

  private clientIs(client: LanguageClient, state: State): void {
    if (client !== this.client) {
      return; // the last words of a client that has been replaced
    }
    if (state === State.Stopped) {
      this.progress.dispose();
    }
    this.status.serverIs(state === State.Running ? "running" : state === State.Starting ? "starting" : "stopped");
  }

  private async stopClient(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    this.progress.dispose();
    if (client?.state === State.Running) {
      await client.dispose();
    }
  }

  dispose(): void {
    void this.stop();
  }
}

async function askToInstall(log: vscode.LogOutputChannel): Promise<void> {
  log.warn("No server: cuda-lsp.server.command is empty, neither the selected Python nor the workspace's .venv has cuda_lsp, PATH has no cuda-lsp.");
  const install = "Install";
  const how = "How to Install";
  const choose = "Set Its Path";
  const answer = await vscode.window.showErrorMessage(
    "CUDA kernels are not analysed: the program cuda-lsp was not found. It can be installed in an environment of its own.",
    install,
    how,
    choose,
  );
  if (answer === install) {
    await vscode.commands.executeCommand("cuda-lsp.installServer");
  } else if (answer === how) {
    await vscode.commands.executeCommand("cuda-lsp.howToInstall");
  } else if (answer === choose) {
    await vscode.commands.executeCommand("workbench.action.openSettings", "cuda-lsp.server.command");
  }
}

async function reportFailedStart(command: ServerCommand, log: vscode.LogOutputChannel): Promise<void> {
  const show = "Show the Log";
  const retry = "Try Again";
  const answer = await vscode.window.showErrorMessage(
    `CUDA kernels are not analysed: ${command.program} did not start.`,
    show,
    retry,
  );
  if (answer === show) {
    log.show();
  } else if (answer === retry) {
    await vscode.commands.executeCommand("cuda-lsp.restart");
  }
}
