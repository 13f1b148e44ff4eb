# The one screen: a WebView that shows the bundle in the app's assets.
#
# Assembled by smali, because no compiler to Android's bytecode can be had without the Android SDK. Each method says in
# Java what it does. tests/unit/test_apk_assemble.py runs this very code on a desktop's JVM.
.class public final Ledgekit/webview/PageActivity;
.super Landroid/app/Activity;
.source "PageActivity.smali"

.field private web:Landroid/webkit/WebView;
.field private chooser:Ledgekit/webview/PictureChooser;

.method public constructor <init>()V
    .locals 0
    invoke-direct {p0}, Landroid/app/Activity;-><init>()V
    return-void
.end method

# web = new WebView(this); prepare(web);
# FrameLayout frame = new FrameLayout(this); frame.setFitsSystemWindows(true);   // not below the bars of the system
# frame.addView(web); setContentView(frame);
# web.loadUrl(answers.start);
.method protected onCreate(Landroid/os/Bundle;)V
    .locals 4
    invoke-super {p0, p1}, Landroid/app/Activity;->onCreate(Landroid/os/Bundle;)V

    new-instance v0, Landroid/webkit/WebView;
    invoke-direct {v0, p0}, Landroid/webkit/WebView;-><init>(Landroid/content/Context;)V
    iput-object v0, p0, Ledgekit/webview/PageActivity;->web:Landroid/webkit/WebView;

    invoke-direct {p0, v0}, Ledgekit/webview/PageActivity;->prepare(Landroid/webkit/WebView;)V

    new-instance v1, Ledgekit/webview/AssetAnswers;
    invoke-virtual {p0}, Ledgekit/webview/PageActivity;->getAssets()Landroid/content/res/AssetManager;
    move-result-object v2
    invoke-direct {v1, v2}, Ledgekit/webview/AssetAnswers;-><init>(Landroid/content/res/AssetManager;)V
    invoke-virtual {v0, v1}, Landroid/webkit/WebView;->setWebViewClient(Landroid/webkit/WebViewClient;)V

    new-instance v2, Ledgekit/webview/PictureChooser;
    invoke-direct {v2, p0}, Ledgekit/webview/PictureChooser;-><init>(Landroid/app/Activity;)V
    iput-object v2, p0, Ledgekit/webview/PageActivity;->chooser:Ledgekit/webview/PictureChooser;
    invoke-virtual {v0, v2}, Landroid/webkit/WebView;->setWebChromeClient(Landroid/webkit/WebChromeClient;)V

    new-instance v2, Landroid/widget/FrameLayout;
    invoke-direct {v2, p0}, Landroid/widget/FrameLayout;-><init>(Landroid/content/Context;)V
    const/4 v3, 0x1
    invoke-virtual {v2, v3}, Landroid/widget/FrameLayout;->setFitsSystemWindows(Z)V
    invoke-virtual {v2, v0}, Landroid/widget/FrameLayout;->addView(Landroid/view/View;)V
    invoke-virtual {p0, v2}, Ledgekit/webview/PageActivity;->setContentView(Landroid/view/View;)V

    invoke-virtual {v1}, Ledgekit/webview/AssetAnswers;->start()Ljava/lang/String;
    move-result-object v1
    invoke-virtual {v0, v1}, Landroid/webkit/WebView;->loadUrl(Ljava/lang/String;)V
    return-void
.end method

# WebSettings settings = web.getSettings();
# settings.setJavaScriptEnabled(true);
# settings.setAllowFileAccess(false); settings.setAllowContentAccess(false); settings.setGeolocationEnabled(false);
# WebView.setWebContentsDebuggingEnabled((getApplicationInfo().flags & ApplicationInfo.FLAG_DEBUGGABLE) != 0);
.method private prepare(Landroid/webkit/WebView;)V
    .locals 3
    invoke-virtual {p1}, Landroid/webkit/WebView;->getSettings()Landroid/webkit/WebSettings;
    move-result-object v0
    const/4 v1, 0x1
    invoke-virtual {v0, v1}, Landroid/webkit/WebSettings;->setJavaScriptEnabled(Z)V
    const/4 v2, 0x0
    invoke-virtual {v0, v2}, Landroid/webkit/WebSettings;->setAllowFileAccess(Z)V
    invoke-virtual {v0, v2}, Landroid/webkit/WebSettings;->setAllowContentAccess(Z)V
    invoke-virtual {v0, v2}, Landroid/webkit/WebSettings;->setGeolocationEnabled(Z)V

    invoke-virtual {p0}, Ledgekit/webview/PageActivity;->getApplicationInfo()Landroid/content/pm/ApplicationInfo;
    move-result-object v0
    iget v0, v0, Landroid/content/pm/ApplicationInfo;->flags:I
    and-int/lit8 v0, v0, 0x2
    if-eqz v0, :released
    invoke-static {v1}, Landroid/webkit/WebView;->setWebContentsDebuggingEnabled(Z)V
    return-void
    :released
    invoke-static {v2}, Landroid/webkit/WebView;->setWebContentsDebuggingEnabled(Z)V
    return-void
.end method

# if (!chooser.take(requestCode, resultCode, data)) super.onActivityResult(requestCode, resultCode, data);
.method protected onActivityResult(IILandroid/content/Intent;)V
    .locals 1
    iget-object v0, p0, Ledgekit/webview/PageActivity;->chooser:Ledgekit/webview/PictureChooser;
    invoke-virtual {v0, p1, p2, p3}, Ledgekit/webview/PictureChooser;->take(IILandroid/content/Intent;)Z
    move-result v0
    if-nez v0, :taken
    invoke-super {p0, p1, p2, p3}, Landroid/app/Activity;->onActivityResult(IILandroid/content/Intent;)V
    :taken
    return-void
.end method

# web.destroy(); super.onDestroy();
.method protected onDestroy()V
    .locals 1
    iget-object v0, p0, Ledgekit/webview/PageActivity;->web:Landroid/webkit/WebView;
    invoke-virtual {v0}, Landroid/webkit/WebView;->destroy()V
    invoke-super {p0}, Landroid/app/Activity;->onDestroy()V
    return-void
.end method
