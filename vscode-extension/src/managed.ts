/** The environment of our own as the editor offers it: with one click, a progress that can be cancelled, and consent. */
import * as path from "node:path";
import * as vscode from "vscode";
import { type Environment, environmentOf, install } from "./environment";
import { interpreters } from "./machine";
import { runner, Stopped } from "./programs";

export class ManagedServer {
  private readonly storage: string;
  private readonly parts: string;
  private installing = false;
  private asked = false;

  constructor(
    storage: vscode.Uri,
    extension: vscode.Uri,
    readonly version: string,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.storage = storage.fsPath;
    this.parts = path.join(extension.fsPath, "server");
  }

  /** The one to start, if any is there. */
  get environment(): Environment | undefined {
    return environmentOf(this.storage, this.version);
  }

  /** Whether it was made; else the reason was told. `wheels`: a folder instead of the index. */
  async install(wheels = vscode.workspace.getConfiguration("cuda-lsp").get("server.wheels", "")): Promise<boolean> {
    if (this.installing) {
      return false;
    }
    this.installing = true;
    try {
      await this.withProgress(wheels);
      this.log.info(`Installed cuda-lsp ${this.version} in ${this.storage}`);
      return true;
    } catch (error) {
      if (!(error instanceof Stopped)) {
        this.log.error(String(error));
        void this.reportFailure(error);
      }
      return false;
    } finally {
      this.installing = false;
    }
  }

  /** The same from a folder that is asked for. */
  async installFromFolder(): Promise<boolean> {
    const [folder] = (await vscode.window.showOpenDialog({
      title: "Folder with the wheels of cuda-lsp's packages",
      openLabel: "Install from Here",
      canSelectFiles: false,
      canSelectFolders: true,
    })) ?? [];
    return folder !== undefined && (await this.install(folder.fsPath));
  }

  /** Asks, once a session, whether another version than the extension's is to be replaced. True: it was. */
  async offerUpdate(): Promise<boolean> {
    const found = this.environment;
    if (found === undefined || found.version === this.version || this.asked) {
      return false;
    }
    this.asked = true;
    const update = "Update";
    const answer = await vscode.window.showInformationMessage(
      `This version of the extension comes with cuda-lsp ${this.version}; ${found.version} is installed.`,
      update,
      "Not Now",
    );
    return answer === update && (await this.install());
  }

  private async withProgress(wheels: string): Promise<void> {
    const options = { location: vscode.ProgressLocation.Notification, cancellable: true, title: "Installing cuda-lsp" };
    await vscode.window.withProgress(options, async (notification, cancellation) => {
      const run = runner(this.storage, (stop) => cancellation.onCancellationRequested(stop));
      const plan = {
        storage: this.storage,
        version: this.version,
        parts: this.parts,
        wheels,
        pythons: await interpreters(),
        platform: process.platform,
      };
      await install(
        plan,
        (program, args, told) => {
          this.log.info(`${program} ${args.join(" ")}`);
          return run(program, args, (line) => {
            this.log.info(line);
            told(line);
          });
        },
        (message, increment) => {
          notification.report({ message, increment });
        },
      );
    });
  }

  private async reportFailure(error: unknown): Promise<void> {
    const [reason = ""] = (error instanceof Error ? error.message : String(error)).split("\n");
    const show = "Show the Log";
    const how = "How to Install";
    const answer = await vscode.window.showErrorMessage(`cuda-lsp was not installed: ${reason}`, show, how);
    if (answer === show) {
      this.log.show();
    } else if (answer === how) {
      await vscode.commands.executeCommand("cuda-lsp.howToInstall");
    }
  }
}
